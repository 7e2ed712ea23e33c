/** The last five minutes of the memory in use, as the chart takes them. */
import type { IChartOptions } from '../chart/plot';
import type { IChartData } from '../chart/timeChart';
import { AHEAD_SECONDS, forecastLine, lastMinutes, limitLevel } from '../live/lastMinutes';
import { humanBytes, tickBytes } from '../units';
import { clock } from '../when';

import type { PanelModel } from './model';
import { trans } from './words';

/** The axis bears times of day: a widget is also looked at when nothing moves any more. */
export const CHART_OPTIONS: IChartOptions = {
  height: 128,
  formatValue: humanBytes,
  formatTick: tickBytes,
  formatTime: seconds => clock(seconds),
  endLabels: null
};

/** What to draw; null while there is no sample. */
export function chartData(model: PanelModel): IChartData | null {
  const { series, state, marks } = model;
  const { forecast, limit } = state.host;
  const end = series.end;
  if (end === null) {
    return null;
  }
  const { points, from } = lastMinutes(series, end);
  return {
    points,
    range: [from, end + AHEAD_SECONDS],
    limit: limitLevel(limit),
    marks,
    forecast: forecastLine(forecast, limit, series, end),
    end: null,
    description: describe(model, end)
  };
}

function describe({ series, state }: PanelModel, end: number): string {
  const { limit } = state.host;
  const last = humanBytes(series.values[series.values.length - 1] ?? null);
  return limit === null
    ? trans.__('Memory in use, 5 minutes until %1: %2 at the end', clock(end), last)
    : trans.__(
        'Memory in use, 5 minutes until %1: %2 of %3 at the end, %4',
        clock(end),
        last,
        humanBytes(limit.bytes),
        limit.name
      );
}
