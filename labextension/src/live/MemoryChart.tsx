import * as React from 'react';

import type { IChartData } from '../chart/timeChart';
import type { GuardModel } from '../model';
import { ChartView } from '../parts/ChartView';
import { humanBytes, tickBytes } from '../units';
import { clock } from '../when';
import type { Host } from '../wire';
import type { Trans } from '../words';

import { AHEAD_SECONDS, forecastLine, lastMinutes, limitLevel } from './lastMinutes';

/** The last five minutes of a kernel's memory, with its limit, the cells that ran, and the forecast. */
export function MemoryChart(props: MemoryChart.IProps): React.JSX.Element | null {
  const { height = 128, title, trans, ...curve } = props;
  const { forecast, limit, marks, series } = curve;
  // The series changes in place; its version says when.
  const data = React.useMemo(
    () => (series.end === null ? null : chartData(curve, series.end, title, trans)),
    [series, series.version, marks, limit?.bytes, limit?.name, !forecast, title, trans]
  );
  return data === null ? null : (
    <ChartView
      data={data}
      options={{
        height,
        formatValue: humanBytes,
        formatTick: tickBytes,
        formatTime: seconds => clock(seconds),
        endLabels: [trans.__('−5 min'), trans.__('now')]
      }}
    />
  );
}

export namespace MemoryChart {
  export interface ICurve {
    readonly series: Pick<GuardModel['series'], 'times' | 'values' | 'end' | 'version'>;
    readonly marks?: GuardModel['marks'];
    readonly limit: { readonly bytes: number; readonly name: string } | null;
    readonly forecast?: Host['forecast'];
  }

  export interface IProps extends ICurve {
    /** What the line is, for those who do not see it. */
    readonly title: string;
    readonly height?: number;
    readonly trans: Trans;
  }
}

function chartData(
  curve: MemoryChart.ICurve,
  end: number,
  title: string,
  trans: Trans
): IChartData {
  const { forecast = null, series, marks = [], limit } = curve;
  const { points, from } = lastMinutes(series, end);
  return {
    points,
    range: [from, end + AHEAD_SECONDS],
    now: end,
    limit: limitLevel(limit),
    marks,
    forecast: forecastLine(forecast, limit, series, end),
    end: null,
    description: describe(curve, title, trans)
  };
}

function newest({ values }: MemoryChart.ICurve['series']): number | null {
  return values[values.length - 1] ?? null;
}

function describe({ series, limit }: MemoryChart.ICurve, title: string, trans: Trans): string {
  const now = humanBytes(newest(series));
  if (limit === null) {
    return trans.__('%1, last 5 minutes: now %2', title, now);
  }
  const { bytes, name } = limit;
  return trans.__('%1, last 5 minutes: now %2 of %3, %4', title, now, humanBytes(bytes), name);
}
