/** Times and spans in the page's language and the user's time zone. */
import type { Trans } from './trans';

const DAY_SECONDS = 86_400;

/** `02:14:07`; with `short`, `02:14`. */
export function clock(seconds: number, short = false): string {
  return new Date(seconds * 1000).toLocaleTimeString(undefined, {
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    ...(short ? {} : { second: '2-digit' })
  });
}

/** Unix seconds of an ISO 8601 text. */
export function parseStamp(stamp: string): number {
  return Date.parse(stamp) / 1000;
}

/** A past time in short form: `today 02:14`, `Thu 17:02`, `2026-03-01`. */
export function dayAndTime(seconds: number, now: number, trans: Trans): string {
  const then = new Date(seconds * 1000);
  const today = new Date(now * 1000);
  if (then.toDateString() === today.toDateString()) {
    return trans.__('today %1', clock(seconds, true));
  }
  if (now - seconds < 6 * DAY_SECONDS && now > seconds) {
    const day = then.toLocaleDateString(language(), { weekday: 'short' });
    return `${day} ${clock(seconds, true)}`;
  }
  return then.toLocaleDateString();
}

/** `Saturday 21 November 2026, 02:14:07 CET`, in the order of the user's language, with the time zone. */
export function fullTime(stamp: string): string {
  const seconds = parseStamp(stamp);
  const day = new Date(seconds * 1000).toLocaleDateString(language(), {
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    year: 'numeric'
  });
  return `${day}, ${clock(seconds)} ${zone(seconds)}`;
}

/** Short name of the user's time zone at a time: `CET`, `GMT+1`. */
function zone(seconds: number): string {
  const parts = new Intl.DateTimeFormat(language(), { timeZoneName: 'short' });
  const found = parts.formatToParts(seconds * 1000).find(({ type }) => type === 'timeZoneName');
  return found?.value ?? '';
}

/**
 * Language for the names of days and months: JupyterLab's language from the page, so that it matches the other
 * texts. Prefers the user's variant (`en-GB`) if there is one. Undefined means the browser's language.
 */
function language(): string | undefined {
  try {
    const [found] = Intl.getCanonicalLocales(document.documentElement.lang.replace('_', '-'));
    return navigator.languages.find(own => own.split('-')[0] === found) ?? found;
  } catch {
    return undefined; // missing or not a language tag
  }
}

/** A span, coarser than in a report because it changes while it is read: `41 s`, `9 min`, `2 h 5 min`, `3 d`. */
export function humanSpan(seconds: number, trans: Trans): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 90) {
    return trans.__('%1 s', whole);
  }
  const minutes = Math.round(whole / 60);
  if (minutes < 90) {
    return trans.__('%1 min', minutes);
  }
  if (minutes < 48 * 60) {
    return trans.__('%1 h %2 min', Math.floor(minutes / 60), minutes % 60);
  }
  return trans.__('%1 d', Math.round(minutes / 60 / 24));
}
