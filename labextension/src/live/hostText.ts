/** What is said of a kernel's memory, without how it is drawn: the panel and the widget say the same. */
import { bytesOfLimit, humanBytes, UNKNOWN } from '../units';
import type { Host } from '../wire';
import type { Trans } from '../words';

import type { IShares } from './memory';

/** `6.1 of 8.0 GiB`: the number that panel, widget and status bar show. Without a limit, the number alone. */
export function memoryText({ limit, used_bytes }: Host, trans: Trans): string {
  return limit === null || used_bytes === null
    ? humanBytes(used_bytes)
    : trans.__('%1 of %2', ...bytesOfLimit(used_bytes, limit.bytes));
}

/** Which limit that is, and what is left below it. */
export function limitText(host: Host, trans: Trans): string {
  const { limit } = host;
  if (limit === null) {
    return trans.__('limit not known');
  }
  const free = freeBytes(host);
  return free === null ? limit.name : trans.__('%1 · %2 still free', limit.name, humanBytes(free));
}

/** `this kernel 1.2 GiB · other kernels 300 MiB · rest 80 MiB`; empty where all is the kernel's own. */
export function sharesText(shares: IShares | null, trans: Trans): string {
  return shares === null
    ? ''
    : [
        trans.__('this kernel %1', humanBytes(shares.own)),
        ...(shares.ofOthers > 0 ? [trans.__('other kernels %1', humanBytes(shares.ofOthers))] : []),
        trans.__('rest %1', humanBytes(shares.rest))
      ].join(' · ');
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

/** The kernel's resident memory and its peak on one line; children and swap only where there are any. */
export function memoryDetails(host: Host, trans: Trans): string {
  const parts = [
    trans.__('resident %1', humanBytes(host.rss_bytes)),
    trans.__('peak %1', humanBytes(host.peak_bytes)),
    ...((host.children_rss_bytes ?? 0) > 0
      ? [trans.__('children %1', humanBytes(host.children_rss_bytes))]
      : []),
    ...((host.swap_bytes ?? 0) > 0 ? [trans.__('swapped out %1', humanBytes(host.swap_bytes))] : [])
  ];
  return parts.filter(part => !part.includes(UNKNOWN)).join(' · ');
}

/** What is left below the limit that binds. */
function freeBytes({ limit, used_bytes }: Host): number | null {
  return limit === null || used_bytes === null ? null : Math.max(0, limit.bytes - used_bytes);
}
