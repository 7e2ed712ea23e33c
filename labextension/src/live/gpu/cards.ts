/** Which cards are drawn in full, and which in one line: a machine with eight of them stays calm. */
import type { GpuDevice, GpuHolder, Gpus } from '../../wire';

/** Up to here each card stands in full. */
const FEW_CARDS = 2;

/** With many cards, as many of this kernel's stand in full. */
const FULL_CARDS = 4;

/** TensorFlow makes a context on every card it sees: less than this part of its largest share is no work. */
const WORTH_FRACTION = 0.1;

export interface ICard {
  readonly device: GpuDevice;
  /** How many MIG instances the card is split into; null for an instance and for a card in one piece. */
  readonly instancesCount: number | null;
  readonly isFull: boolean;
}

/** Whose share is "this kernel" follows from the notebook in front, also before the server's next word. */
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

/** All cards, in the driver's order, an instance after its card. */
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

/** The first few cards that this kernel works on. */
function ownCards(devices: readonly GpuDevice[]): Set<GpuDevice> {
  const shares = devices.map(device => [device, thisBytes(device)] as const);
  const largest = Math.max(0, ...shares.map(([, bytes]) => bytes ?? 0));
  const own = shares.filter(([, bytes]) => bytes !== null && bytes >= largest * WORTH_FRACTION);
  return new Set(own.slice(0, FULL_CARDS).map(([device]) => device));
}

/** What this kernel holds on a card, where it holds anything; an unknown amount counts as some. */
function thisBytes(device: GpuDevice): number | null {
  const own = (device.holders ?? []).filter(holder => holder.is_this);
  return own.length === 0 ? null : (sumOf(own) ?? Infinity);
}

/** Bytes of all together; null as soon as one of them is not known. */
export function sumOf(holders: readonly GpuHolder[]): number | null {
  return holders.reduce<number | null>(
    (sum, { used_bytes }) => (sum === null || used_bytes === null ? null : sum + used_bytes),
    0
  );
}
