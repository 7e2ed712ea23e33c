/** GPUs for the tests, as the server sends them. */
import type { GpuDevice, GpuHolder, Gpus } from '../wire';

export const GIB = 2 ** 30;
export const KERNEL = 'this-kernel';

export function holder(changes: Partial<GpuHolder> = {}): GpuHolder {
  return {
    kernel_id: null,
    notebook_path: null,
    name: null,
    pid: null,
    used_bytes: null,
    is_this: false,
    ...changes
  };
}

/** What the kernel in front holds. */
export function own(gib: number | null): GpuHolder {
  const used_bytes = gib === null ? null : gib * GIB;
  return holder({ kernel_id: KERNEL, notebook_path: 'train.ipynb', pid: 4711, used_bytes });
}

/** What another notebook holds. */
export function other(name: string, gib: number): GpuHolder {
  return holder({ kernel_id: name, notebook_path: `course/${name}`, used_bytes: gib * GIB });
}

/** A healthy unused GPU. */
export function card(changes: Partial<GpuDevice> = {}): GpuDevice {
  const nvml_index = changes.nvml_index ?? 0;
  return {
    nvml_index,
    mig_index: null,
    gpu_uuid: `GPU-${nvml_index}-${changes.mig_index ?? ''}`,
    name: 'NVIDIA H100 80GB HBM3',
    memory_total_bytes: 80 * GIB,
    memory_used_bytes: 0,
    utilization_fraction: 0,
    temperature_celsius: 34,
    power_watts: 71.6,
    power_limit_watts: 700,
    lost: false,
    holders: [],
    other_bytes: 0,
    note: null,
    alarms: [],
    ...changes
  };
}

/** A MIG instance: the driver reports its memory and nothing else. */
export function instance(mig_index: number, changes: Partial<GpuDevice> = {}): GpuDevice {
  return card({
    mig_index,
    name: 'NVIDIA A100 MIG 1g.10gb',
    memory_total_bytes: 9.75 * GIB,
    utilization_fraction: null,
    temperature_celsius: null,
    power_watts: null,
    power_limit_watts: null,
    ...changes
  });
}

/** `used` in GiB on the card, and who holds it; what is left of it is the driver's. */
export function held(
  nvml_index: number,
  used: number,
  holders: GpuHolder[],
  changes: Partial<GpuDevice> = {}
): GpuDevice {
  const known = holders.reduce((sum, { used_bytes }) => sum + (used_bytes ?? 0), 0);
  return card({
    nvml_index,
    memory_used_bytes: used * GIB,
    holders,
    other_bytes: used * GIB - known,
    ...changes
  });
}

export function machine(devices: GpuDevice[]): Gpus {
  return { state: 'ok', reason: null, devices };
}
