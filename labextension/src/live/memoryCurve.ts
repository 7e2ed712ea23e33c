/** The chart of a kernel's memory in the last five minutes, with its limit, cells and forecast. */
import type { ISegment } from '../chart/forecast';
import type { IChartOptions } from '../chart/plot';
import { TimeChart } from '../chart/timeChart';
import type { IChartData, IPoints } from '../chart/timeChart';
import type { IDrawing } from '../parts/dom';
import { humanBytes, tickBytes } from '../units';
import { clock } from '../when';
import type { Forecast, Mark } from '../wire';
import type { Trans } from '../trans';

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

/** What is fixed for a chart. */
interface IMemoryChart {
  readonly height: number;
  /** Labels at the two ends of the axis instead of the times of day. */
  readonly endLabels: IChartOptions['endLabels'];
  /** What the line shows, for screen readers. */
  readonly title: string;
}

/** There is no chart before the first sample. It is drawn when the series has changed, not with each value. */
export function memoryChart(
  host: HTMLElement,
  { height, endLabels, title }: IMemoryChart,
  trans: Trans
): IDrawing<IMemoryCurve> {
  const options: IChartOptions = {
    height,
    formatValue: humanBytes,
    formatTick: tickBytes,
    formatTime: seconds => clock(seconds),
    endLabels
  };
  let chart: TimeChart | null = null;
  let drawn: readonly unknown[] = [];
  return {
    draw: curve => {
      const { forecast, limit, marks, series } = curve;
      const parts = [series, series.version, marks, limit?.bytes, limit?.name, !forecast];
      const data = parts.every((part, index) => part === drawn[index])
        ? null
        : memoryData(curve, title, trans);
      if (data !== null) {
        drawn = parts;
        chart ??= new TimeChart(host, options);
        chart.draw(data);
      }
    },
    dispose: () => chart?.dispose()
  };
}

/** Null while there is no sample. */
function memoryData(curve: IMemoryCurve, title: string, trans: Trans): IChartData | null {
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
  const newest = humanBytes(values[values.length - 1] ?? null);
  return {
    points: { times: times.slice(first), values: values.slice(first) },
    range: [from, end + AHEAD_SECONDS],
    now: end,
    limit: limit && { value: limit.bytes, label: limitLabel(limit) },
    marks,
    forecast: forecastLine(curve, end),
    end: null,
    description:
      limit === null
        ? trans.__('%1, last 5 minutes: newest %2', title, newest)
        : trans.__(
            '%1, last 5 minutes: newest %2 of %3, %4',
            title,
            newest,
            humanBytes(limit.bytes),
            limit.name
          )
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
