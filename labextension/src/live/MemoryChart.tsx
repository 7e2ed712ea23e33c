import * as React from 'react';

import type { IChartData } from '../chart/timeChart';
import type { GuardModel } from '../model';
import { ChartView } from '../parts/ChartView';
import { humanBytes, tickBytes } from '../units';
import { clock } from '../when';
import type { Trans } from '../words';

const WINDOW_SECONDS = 300;

/** The last five minutes of a kernel's memory, with its limit and the cells that ran. */
export function MemoryChart(props: MemoryChart.IProps): React.JSX.Element | null {
  const { series, marks, limit, trans } = props;
  const end = series.end;
  if (end === null) {
    return null;
  }
  const from = end - WINDOW_SECONDS;
  const first = Math.max(
    0,
    series.times.findIndex(time => time >= from)
  );
  const data: IChartData = {
    points: { times: series.times.slice(first), values: series.values.slice(first) },
    range: [from, end],
    limit:
      limit === null
        ? null
        : { value: limit.bytes, label: `${limit.name} ${humanBytes(limit.bytes)}` },
    marks,
    end: null,
    description: describe(props)
  };
  return (
    <ChartView
      data={data}
      options={{
        height: 128,
        canZoom: false,
        formatValue: humanBytes,
        formatTick: tickBytes,
        formatTime: seconds => clock(seconds),
        endLabels: [trans.__('−5 min'), trans.__('now')]
      }}
    />
  );
}

function describe({ series, limit, trans }: MemoryChart.IProps): string {
  const now = humanBytes(series.values[series.values.length - 1] ?? null);
  return limit === null
    ? trans.__('Memory of this kernel, last 5 minutes: now %1', now)
    : trans.__(
        'Memory of this kernel, last 5 minutes: now %1 of %2, %3',
        now,
        humanBytes(limit.bytes),
        limit.name
      );
}

export namespace MemoryChart {
  export interface IProps {
    readonly series: Pick<GuardModel['series'], 'times' | 'values' | 'end'>;
    readonly marks: GuardModel['marks'];
    readonly limit: { readonly bytes: number; readonly name: string } | null;
    readonly trans: Trans;
  }
}
