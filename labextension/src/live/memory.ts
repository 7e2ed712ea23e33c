import type { Host, OtherKernel } from '../wire';

/** Above this part of its limit a kernel is near its end. */
const NEAR_FRACTION = 0.9;

/** What others use of a limit concerns a kernel that holds at least this part of it. */
const CONCERNED_FRACTION = 0.1;

/** A forecast is a warning when the limit is so near. */
const NEAR_SECONDS = 300;

/** Part of the limit in use; null where not known. A kernel that holds little of a shared limit counts alone. */
export function limitFraction(host: Host): number | null {
  const { limit, used_bytes } = host;
  if (used_bytes === null || limit === null || limit.bytes <= 0) {
    return null;
  }
  const own = ownBytes(host) / limit.bytes;
  const used = used_bytes / limit.bytes;
  return isShared(limit) && own < CONCERNED_FRACTION ? Math.min(own, used) : used;
}

/** Who holds what is in use of the limit; null for a limit of one process, or while it is not known. */
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

/** Whether a limit counts what others hold; a limit of the process (ulimit) does not. */
function isShared({ kind }: NonNullable<Host['limit']>): boolean {
  return kind !== 'ulimit';
}

export function isNearLimit(host: Host): boolean {
  return (limitFraction(host) ?? 0) > NEAR_FRACTION;
}

/** Whether the limit is expected within minutes. */
export function isLimitSoon({ forecast }: Host): boolean {
  return forecast !== null && forecast.seconds_left <= NEAR_SECONDS;
}
