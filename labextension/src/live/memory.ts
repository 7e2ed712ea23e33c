import type { Host, OtherKernel, Stop } from '../wire';

/** Above this fraction of its limit, a kernel is near the limit. */
const NEAR_FRACTION = 0.9;

/** A shared limit matters to a kernel that holds at least this fraction of it. */
const CONCERNED_FRACTION = 0.1;

/** A forecast below this time is shown as a warning. */
const NEAR_SECONDS = 300;

/** The free memory, in thresholds of the stop, at which the warning begins, and at which it ends: so it does not flap. */
const WARN_BELOW = 4;
const CALM_ABOVE = 6;

/** Fraction of the limit in use; null if unknown. Counts only the kernel itself if it holds little of a shared limit. */
export function limitFraction(host: Host): number | null {
  const { limit, used_bytes } = host;
  if (used_bytes === null || limit === null || limit.bytes <= 0) {
    return null;
  }
  const own = ownBytes(host) / limit.bytes;
  const used = used_bytes / limit.bytes;
  return isShared(limit) && own < CONCERNED_FRACTION ? Math.min(own, used) : used;
}

/** Who holds the memory in use; null for the limit of one process, or if unknown. */
export function memoryShares(host: Host, others: readonly OtherKernel[]): IShares | null {
  const { limit, used_bytes: used } = host;
  if (limit === null || used === null || host.rss_bytes === null || !isShared(limit)) {
    return null;
  }
  const own = Math.min(used, ownBytes(host));
  const held = others.reduce((sum, { rss_bytes }) => sum + (rss_bytes ?? 0), 0);
  const ofOthers = Math.min(used - own, held);
  return { own, ofOthers, rest: used - own - ofOthers };
}

/** In bytes. */
export interface IShares {
  readonly own: number;
  /** Of other kernels of this server. */
  readonly ofOthers: number;
  readonly rest: number;
}

function ownBytes({ children_rss_bytes, rss_bytes }: Host): number {
  return (rss_bytes ?? 0) + (children_rss_bytes ?? 0);
}

/** Whether the limit also counts other processes; a ulimit does not. */
function isShared({ kind }: NonNullable<Host['limit']>): boolean {
  return kind !== 'ulimit';
}

export function isNearLimit(host: Host): boolean {
  return (limitFraction(host) ?? 0) > NEAR_FRACTION;
}

/** Whether memory is near the threshold at which the guard stops the cell. `wasNear`: at the last values. */
export function isNearStop(host: Host, stop: Stop | null, wasNear: boolean): boolean {
  const { limit, used_bytes } = host;
  if (stop?.state !== 'on' || stop.stop_bytes === null || limit === null || !isShared(limit)) {
    return false;
  }
  const free = used_bytes === null ? null : limit.bytes - used_bytes;
  return free === null ? wasNear : free < (wasNear ? CALM_ABOVE : WARN_BELOW) * stop.stop_bytes;
}

/** Whether memory will reach the limit within minutes. */
export function isLimitSoon({ forecast }: Host): boolean {
  return forecast !== null && forecast.seconds_left <= NEAR_SECONDS;
}
