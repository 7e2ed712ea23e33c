import type { Brief } from '../wire';
import type { Trans } from '../trans';

import { shortSpan } from './forecastText';
import { memoryText } from './hostText';
import { isLimitSoon, isNearLimit } from './memory';

/** `5.90 of 8.00 GiB`, with ▲ near the limit or during a hang; empty while unknown. */
export function statusText(kernel: Brief | null, trans: Trans): string {
  if (kernel === null || !kernel.watched || kernel.host.used_bytes === null) {
    return '';
  }
  const { hang, host } = kernel;
  const text = memoryText(host, trans);
  if (hang !== null) {
    return `▲ ${trans.__('no progress')} · ${text}`;
  }
  if (host.forecast !== null && isLimitSoon(host)) {
    const span = shortSpan(host.forecast.seconds_left, trans);
    return `▲ ${text} · ${trans.__('limit in %1', span)}`;
  }
  return isNearLimit(host) ? `▲ ${text}` : text;
}
