/** Text for the time until the limit, rounded so that it stays readable. */
import { humanBytes } from '../units';
import type { Host } from '../wire';
import type { Trans } from '../trans';

import { atLimitText } from './hostText';
import { isNearLimit } from './memory';

/** When memory will reach the limit, or that it is near; null otherwise. */
export function limitNotice(host: Host, trans: Trans): { head: string; rest: string } | null {
  const { forecast } = host;
  const atLimit = atLimitText(host, trans);
  if (forecast !== null) {
    return {
      head: trans.__('Limit in %1', aboutSpan(forecast.seconds_left, trans)),
      rest: `${trans.__('at %1/s.', rate(forecast))} ${atLimit}`
    };
  }
  return isNearLimit(host)
    ? { head: trans.__('More than 90 % of the limit is in use.'), rest: atLimit }
    : null;
}

/** The rate with two significant digits. */
function rate({ bytes_per_second }: NonNullable<Host['forecast']>): string {
  return humanBytes(Number(bytes_per_second.toPrecision(2)));
}

/** `about 4 minutes`. */
export function aboutSpan(seconds: number, trans: Trans): string {
  const [count, isMinutes] = coarse(seconds);
  return isMinutes
    ? trans._n('about %1 minute', 'about %1 minutes', count)
    : trans.__('about %1 seconds', count);
}

/** `4 min`, for the status bar. */
export function shortSpan(seconds: number, trans: Trans): string {
  const [count, isMinutes] = coarse(seconds);
  return isMinutes ? trans.__('%1 min', count) : trans.__('%1 s', count);
}

/** Rounds to tens of seconds, then minutes, then steps of five minutes. Returns the count and whether it is minutes. */
function coarse(seconds: number): [number, boolean] {
  if (seconds < 55) {
    return [Math.max(10, Math.round(seconds / 10) * 10), false];
  }
  const minutes = Math.round(seconds / 60);
  return [minutes <= 10 ? minutes : Math.round(minutes / 5) * 5, true];
}
