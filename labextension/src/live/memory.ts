import type { Host } from '../wire';

/** Above this part of its limit a kernel is near its end. */
const NEAR_FRACTION = 0.9;

/** What others use of a limit concerns a kernel that holds at least this part of it. */
const CONCERNED_FRACTION = 0.1;

/** A forecast is a warning when the limit is so near. */
const NEAR_SECONDS = 300;

/**
 * Part of the limit in use; null where not known. What it counts decides: resident pages of libraries may be
 * charged to another container, and address space is not resident at all.
 */
export function limitFraction({ children_rss_bytes, limit, rss_bytes }: Host): number | null {
  if (rss_bytes === null || limit === null || limit.bytes <= 0) {
    return null;
  }
  const own = (rss_bytes + (children_rss_bytes ?? 0)) / limit.bytes;
  const used = (limit.used_bytes ?? own * limit.bytes) / limit.bytes;
  return isShared(limit) && own < CONCERNED_FRACTION ? Math.min(own, used) : used;
}

/** What to set against the limit in few words: near it all that it counts, else the kernel's part of that. */
export function amountOfLimit(host: Host): number | null {
  const { limit, rss_bytes } = host;
  const used = limit?.used_bytes ?? null;
  if (limit === null || used === null || rss_bytes === null) {
    return rss_bytes;
  }
  const isAll = !isShared(limit) || isNearLimit(host) || isLimitSoon(host);
  return isAll ? used : Math.min(rss_bytes, used);
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
