/** Chart data for the last five minutes of a kernel's memory, for the panel and the notebook widget. */
import type { ISegment } from '../chart/forecast';
import type { IChartOptions } from '../chart/plot';
import type { IChartData, IPoints } from '../chart/timeChart';
import { humanBytes, tickBytes } from '../units';
import { clock } from '../when';
import type { Forecast, Mark } from '../wire';

import { limitLabel } from './hostText';

const WINDOW_SECONDS = 300;

/** Space for the forecast; always reserved, so that the curve does not jump. */
const AHEAD_SECONDS = 50;

export interface IMemoryCurve {
  readonly series: IPoints & { readonly end: number | null; readonly version: number };
  readonly marks: readonly Mark[];
  readonly limit: { readonly bytes: number; readonly name: string } | null;
  readonly forecast: Forecast | null;
}

/** Data of the chart; null while there is no sample. `describe` gets the latest value and the limit as text. */
export function memoryData(
  curve: IMemoryCurve,
  describe: (newest: string, limit: string | null) => string
): IChartData | null {
  const { limit, marks, series } = curve;
  const { end, times, values } = series;
  if (end === null) {
    return null;
  }
  const from = end - WINDOW_SECONDS;
  const first = Math.max(
    0,
    times.findIndex(time => time >= from)
  );
  return {
    points: { times: times.slice(first), values: values.slice(first) },
    range: [from, end + AHEAD_SECONDS],
    now: end,
    limit: limit && { value: limit.bytes, label: limitLabel(limit) },
    marks,
    forecast: forecastLine(curve, end),
    end: null,
    description: describe(
      humanBytes(values[values.length - 1] ?? null),
      limit && `${humanBytes(limit.bytes)}, ${limit.name}`
    )
  };
}

/** `endLabels` replace the times of day. */
export function memoryChartOptions(
  height: number,
  endLabels: IChartOptions['endLabels']
): IChartOptions {
  return {
    height,
    formatValue: humanBytes,
    formatTick: tickBytes,
    formatTime: seconds => clock(seconds),
    endLabels
  };
}

/** A line from the latest value at the forecast rate, up to the limit; null without a forecast. */
function forecastLine({ forecast, limit, series }: IMemoryCurve, end: number): ISegment | null {
  const value = series.values[series.values.length - 1] ?? null;
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
