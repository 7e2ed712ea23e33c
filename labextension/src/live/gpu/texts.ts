/** Short texts about a GPU. */
import { bytesOfLimit, humanBytes, humanPercent, tickBytes, UNKNOWN } from '../../units';
import type { GpuDevice } from '../../wire';
import type { Trans } from '../../trans';

/** `GPU 0`, `GPU 0 · MIG 1`. */
export function titleOf({ nvml_index, mig_index }: GpuDevice, trans: Trans): string {
  return mig_index === null
    ? trans.__('GPU %1', nvml_index)
    : trans.__('GPU %1 · MIG %2', nvml_index, mig_index);
}

/** `A100-SXM4, 40 GiB`, `1g.10gb, 9.75 GiB`: without the vendor, and with the size only once. */
export function modelOf(device: GpuDevice): string {
  const { memory_total_bytes: total } = device;
  return total === null ? shortName(device) : `${shortName(device)}, ${tickBytes(total)}`;
}

/** `40 GiB each, A100-SXM4`, for GPUs of one model: the size first, because the text may be cut. */
export function eachText(device: GpuDevice, trans: Trans): string {
  const { memory_total_bytes: total } = device;
  return total === null
    ? shortName(device)
    : trans.__('%1 each, %2', tickBytes(total), shortName(device));
}

function shortName({ name }: GpuDevice): string {
  return name
    .replace(/^.* MIG (?=\d)/, '')
    .replace(/^NVIDIA /, '')
    .replace(/-\d+GB$/, '');
}

/** `27.9 of 40.0 GiB`, or a dash if unknown. */
export function usedText(device: GpuDevice, trans: Trans): string {
  const { memory_used_bytes, memory_total_bytes: total } = device;
  const used = device.lost ? null : memory_used_bytes;
  return total === null ? humanBytes(used) : trans.__('%1 of %2', ...bytesOfLimit(used, total));
}

/** `71 °C · 288 of 400 W · 83 % busy`; unknown values are left out; a lost GPU has dashes. */
export function factsOf(device: GpuDevice, trans: Trans): string {
  const { temperature_celsius, power_limit_watts, power_watts, utilization_fraction } = device;
  if (device.lost && device.mig_index === null) {
    return `${UNKNOWN} °C · ${UNKNOWN} W · ${trans.__('%1 busy', UNKNOWN)}`;
  }
  return [
    ...(temperature_celsius === null ? [] : [`${Math.round(temperature_celsius)} °C`]),
    ...(power_watts === null ? [] : [powerText(power_watts, power_limit_watts, trans)]),
    ...(utilization_fraction === null
      ? []
      : [trans.__('%1 busy', humanPercent(utilization_fraction))])
  ].join(' · ');
}

function powerText(watts: number, limit: number | null, trans: Trans): string {
  return limit === null
    ? trans.__('%1 W', Math.round(watts))
    : trans.__('%1 of %2 W', Math.round(watts), Math.round(limit));
}
