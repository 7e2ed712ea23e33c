import type { Host } from '../wire';

/** Above this part of its limit a kernel is near its end. */
const NEAR_FRACTION = 0.9;

/** Part of the limit that the kernel and its children hold; null where either is not known. */
export function limitFraction(host: Host): number | null {
  if (host.rss_bytes === null || host.limit === null || host.limit.bytes <= 0) {
    return null;
  }
  return (host.rss_bytes + (host.children_rss_bytes ?? 0)) / host.limit.bytes;
}

export function isNearLimit(host: Host): boolean {
  return (limitFraction(host) ?? 0) > NEAR_FRACTION;
}
