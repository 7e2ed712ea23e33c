/** Selects the GPUs that are shown with all details; the others take one line. */
import type { GpuDevice, GpuHolder, Gpus } from '../../wire';

/** Up to this number, all GPUs are shown with all details. */
const FEW_CARDS = 2;

/** With more GPUs, at most this many of the kernel's GPUs are shown with all details. */
const FULL_CARDS = 4;

/** TensorFlow creates a context on every visible GPU: a smaller fraction of the largest share does not count as use. */
const WORTH_FRACTION = 0.1;

export interface ICard {
  readonly device: GpuDevice;
  /** Number of MIG instances; null for an instance and for a GPU that is not split. */
  readonly instancesCount: number | null;
  readonly isFull: boolean;
}

/** Sets `is_this` for the current kernel, without waiting for the next message of the server. */
export function seenFrom(kernelId: string | null, devices: Gpus['devices']): Gpus['devices'] {
  return devices.map(device => ({
    ...device,
    holders:
      device.holders?.map(holder => ({
        ...holder,
        is_this: holder.kernel_id !== null && holder.kernel_id === kernelId
      })) ?? null
  }));
}

/** All GPUs in the driver's order, each instance after its GPU. */
export function arrange(devices: Gpus['devices']): ICard[] {
  const instances = devices.filter(device => device.mig_index !== null);
  const instancesOf = (device: GpuDevice): GpuDevice[] =>
    device.mig_index === null
      ? instances.filter(instance => instance.nvml_index === device.nvml_index)
      : [];
  const pieces = devices.filter(device => instancesOf(device).length === 0);
  const isFew = pieces.length <= FEW_CARDS;
  const own = ownCards(pieces);
  const isFull = (device: GpuDevice): boolean =>
    isFew || own.has(device) || device.lost || device.alarms.length > 0;
  return devices.map(device => {
    const parts = instancesOf(device);
    return {
      device,
      instancesCount: parts.length > 0 ? parts.length : null,
      isFull: isFull(device) || parts.some(isFull)
    };
  });
}

/** The first few GPUs that this kernel uses. */
function ownCards(devices: readonly GpuDevice[]): Set<GpuDevice> {
  const shares = devices.map(device => [device, thisBytes(device)] as const);
  const largest = Math.max(0, ...shares.map(([, bytes]) => bytes ?? 0));
  const own = shares.filter(([, bytes]) => bytes !== null && bytes >= largest * WORTH_FRACTION);
  return new Set(own.slice(0, FULL_CARDS).map(([device]) => device));
}

/** Memory of this kernel on a GPU; null if none, infinite if the amount is unknown. */
function thisBytes(device: GpuDevice): number | null {
  const own = (device.holders ?? []).filter(holder => holder.is_this);
  return own.length === 0 ? null : (sumOf(own) ?? Infinity);
}

/** Sum of the bytes; null if one of them is unknown. */
export function sumOf(holders: readonly GpuHolder[]): number | null {
  return holders.reduce<number | null>(
    (sum, { used_bytes }) => (sum === null || used_bytes === null ? null : sum + used_bytes),
    0
  );
}
