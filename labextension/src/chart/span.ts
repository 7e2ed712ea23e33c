/** Time spans of a chart, and lookups by time. */

/** Start and end, in seconds. */
export type Span = readonly [number, number];

const SHORTEST_SECONDS = 0.5;

/** `span` made shorter or longer around `centre`, within `all`; null when it is all of it. */
export function zoomed(span: Span, all: Span, factor: number, centre?: number): Span | null {
  const [from, to] = span;
  const length = Math.max(SHORTEST_SECONDS, (to - from) * factor);
  if (length >= all[1] - all[0]) {
    return null;
  }
  const middle = centre ?? (from + to) / 2;
  const share = Math.min(1, Math.max(0, (middle - from) / (to - from)));
  const start = Math.min(all[1] - length, Math.max(all[0], middle - length * share));
  return [start, start + length];
}

/** A span of the same length that starts or ends at `time`, whichever is nearer. */
export function shifted(span: Span, time: number): Span {
  const length = span[1] - span[0];
  return time < span[0] ? [time, time + length] : [time - length, time];
}

/** The latest known value up to `index`; null if there is none or the value is unknown. */
export function known(values: ArrayLike<number | null | undefined>, index: number): number | null {
  for (let place = index; place >= 0; place -= 1) {
    const value = values[place];
    if (value !== undefined) {
      return value;
    }
  }
  return null;
}

/** The item nearest to `time` within `reach`, or null. */
export function nearest<T extends { readonly time: number }>(
  moments: readonly T[],
  time: number,
  reach: number
): T | null {
  let best: T | null = null;
  for (const moment of moments) {
    const distance = Math.abs(moment.time - time);
    if (distance <= reach && (best === null || distance < Math.abs(best.time - time))) {
      best = moment;
    }
  }
  return best;
}
