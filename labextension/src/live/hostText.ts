/** Texts about a kernel's memory, shared by the panel and the widget. */
import { bytesOfLimit, humanBytes } from '../units';
import type { Host } from '../wire';
import type { Trans } from '../trans';

import type { IShares } from './memory';

/** `6.10 of 8.00 GiB`: the number that panel, widget and status bar show. Without a limit, the number alone. */
export function memoryText({ limit, used_bytes }: Host, trans: Trans): string {
  return limit === null || used_bytes === null
    ? humanBytes(used_bytes)
    : trans.__('%1 of %2', ...bytesOfLimit(used_bytes, limit.bytes));
}

/** Name of the limit and the free memory below it. */
export function limitText(host: Host, trans: Trans): string {
  const { limit } = host;
  if (limit === null) {
    return trans.__('limit unknown');
  }
  const free = freeBytes(host);
  return free === null ? limit.name : trans.__('%1 · %2 free', limit.name, humanBytes(free));
}

/** `this kernel 1.20 GiB · other kernels 300 MiB · rest 80 MiB`; empty for the limit of one process. */
export function sharesText(shares: IShares | null, trans: Trans): string {
  return shares === null
    ? ''
    : [
        trans.__('this kernel %1', humanBytes(shares.own)),
        ...(shares.ofOthers > 0 ? [trans.__('other kernels %1', humanBytes(shares.ofOthers))] : []),
        trans.__('rest %1', humanBytes(shares.rest))
      ].join(' · ');
}

/** `container limit 8.00 GiB`, `ulimit -v 4.00 GiB`: short enough for the chart of a narrow panel. */
export function limitLabel(limit: { readonly bytes: number; readonly name: string }): string {
  const name = /\((.+)\)$/.exec(limit.name)?.[1] ?? limit.name;
  return `${name} ${humanBytes(limit.bytes)}`;
}

/** What happens at the limit: the system kills a process at a container limit, and refuses memory at a ulimit. */
export function atLimitText({ limit }: Host, trans: Trans): string {
  return limit?.kind === 'ulimit'
    ? trans.__('At the limit, allocations fail and native code may crash.')
    : trans.__('At the limit, the system kills the kernel.');
}

/** Free memory below the limit. */
function freeBytes({ limit, used_bytes }: Host): number | null {
  return limit === null || used_bytes === null ? null : Math.max(0, limit.bytes - used_bytes);
}
