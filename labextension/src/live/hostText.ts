/** What is said of a kernel's memory, without how it is drawn: the panel and the widget say the same. */
import { bytesOfLimit, humanBytes, UNKNOWN } from '../units';
import type { Host } from '../wire';
import type { Trans } from '../words';

/** `6.1 of 8.0 GiB · container limit`: what the limit counts, which is not the kernel's resident memory. */
export function limitText({ limit }: Pick<Host, 'limit'>, trans: Trans): string {
  if (limit === null) {
    return trans.__('limit not known');
  }
  const { bytes, name, used_bytes } = limit;
  return used_bytes === null
    ? trans.__('of %1 · %2', humanBytes(bytes), name)
    : trans.__('%1 of %2 · %3', ...bytesOfLimit(used_bytes, bytes), name);
}

/** `container limit 8.0 GiB`, `ulimit -v 4.0 GiB`: short enough to stand in a chart of a narrow panel. */
export function limitLabel(limit: { readonly bytes: number; readonly name: string }): string {
  const name = /\((.+)\)$/.exec(limit.name)?.[1] ?? limit.name;
  return `${name} ${humanBytes(limit.bytes)}`;
}

/** What comes at the limit: the system kills who passes that of a container, and refuses memory beyond a ulimit. */
export function atLimitText({ limit }: Host, trans: Trans): string {
  return limit?.kind === 'ulimit'
    ? trans.__('At the limit no more memory is given; native code may crash then.')
    : trans.__('At the limit the kernel is killed.');
}

/** Peak and rest on one line; children and swap only where there are any. */
export function memoryDetails(host: Host, trans: Trans): string {
  const parts = [
    trans.__('peak %1', humanBytes(host.peak_bytes)),
    ...((host.children_rss_bytes ?? 0) > 0
      ? [trans.__('children %1', humanBytes(host.children_rss_bytes))]
      : []),
    ...((host.swap_bytes ?? 0) > 0
      ? [trans.__('swapped out %1', humanBytes(host.swap_bytes))]
      : []),
    trans.__('%1 still free', humanBytes(freeBytes(host)))
  ];
  return parts.filter(part => !part.includes(UNKNOWN)).join(' · ');
}

/** What is left below the limit that binds; where its use is not known, of the machine. */
function freeBytes({ available_bytes, limit }: Host): number | null {
  const used = limit?.used_bytes ?? null;
  return limit === null || used === null ? available_bytes : Math.max(0, limit.bytes - used);
}
