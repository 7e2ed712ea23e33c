import { bytesOfLimit, humanBytes } from '../units';
import type { Host, KernelState } from '../wire';
import type { Trans } from '../words';

import { isNearLimit } from './memory';

/** `5.9 of 8.0 GiB`, with ▲ near the limit or while it stands still; empty while nothing is known. */
export function statusText(kernel: KernelState | null, trans: Trans): string {
  if (kernel === null || !kernel.watched || kernel.host.rss_bytes === null) {
    return '';
  }
  const { hang, host } = kernel;
  const text = amount(host, trans);
  if (hang !== null) {
    return `▲ ${trans.__('no progress')} · ${text}`;
  }
  return isNearLimit(host) ? `▲ ${text}` : text;
}

function amount({ rss_bytes, limit }: Host, trans: Trans): string {
  return limit === null
    ? humanBytes(rss_bytes)
    : trans.__('%1 of %2', ...bytesOfLimit(rss_bytes, limit.bytes));
}
