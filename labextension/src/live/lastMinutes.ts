/** The last five minutes of a kernel's memory as a chart takes them: for the panel, and for the widget in a notebook. */
import type { IPoints } from '../chart/timeChart';
import type { ISegment } from '../chart/forecast';
import type { ILevel } from '../chart/overlay';
import type { Host } from '../wire';

import { limitLabel } from './hostText';

export const WINDOW_SECONDS = 300;

/** Room for what is foreseen; kept free at all times, so that nothing jumps when it comes. */
export const AHEAD_SECONDS = 50;

/** The points of the window that ends at `end`, and where it begins. */
export function lastMinutes(series: IPoints, end: number): { points: IPoints; from: number } {
  const from = end - WINDOW_SECONDS;
  const first = Math.max(
    0,
    series.times.findIndex(time => time >= from)
  );
  return {
    points: { times: series.times.slice(first), values: series.values.slice(first) },
    from
  };
}

/** A limit with its name and size; null where there is none. */
export function limitLevel(
  limit: { readonly bytes: number; readonly name: string } | null
): ILevel | null {
  return limit && { value: limit.bytes, label: limitLabel(limit) };
}

/** From the newest value on, at the rate that is foreseen, to the limit at most; null where nothing is. */
export function forecastLine(
  forecast: Host['forecast'],
  limit: { readonly bytes: number } | null,
  { values }: Pick<IPoints, 'values'>,
  end: number
): ISegment | null {
  const value = values[values.length - 1] ?? null;
  if (forecast === null || limit === null || value === null) {
    return null;
  }
  const room = Math.max(0, limit.bytes - value) / forecast.bytes_per_second;
  const seconds = Math.min(AHEAD_SECONDS, forecast.seconds_left, room);
  return {
    from: [end, value],
    to: [end + seconds, value + seconds * forecast.bytes_per_second]
  };
}
