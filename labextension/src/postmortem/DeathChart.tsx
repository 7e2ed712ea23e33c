import * as React from 'react';

import type { IChartData } from '../chart/timeChart';
import { ChartView } from '../parts/ChartView';
import { humanBytes, tickBytes } from '../units';
import { clock } from '../when';
import type { Report } from '../wire';
import type { Trans } from '../words';

type Memory = NonNullable<Report['memory']>;

/** The kernel's memory up to its end. Drag to look closer, double click to see all. */
export function DeathChart(props: DeathChart.IProps): React.JSX.Element | null {
  const { memory, isAlive, trans } = props;
  const data = React.useMemo(() => chartData(memory, isAlive, trans), [memory, isAlive, trans]);
  if (data === null) {
    return null;
  }
  return (
    <ChartView
      data={data}
      options={{
        height: 210,
        canZoom: true,
        formatValue: humanBytes,
        formatTick: tickBytes,
        formatTime: seconds => clock(seconds),
        endLabels: null
      }}
    />
  );
}

export namespace DeathChart {
  export interface IProps {
    readonly memory: Memory;
    /** A child died, not the kernel. */
    readonly isAlive: boolean;
    readonly trans: Trans;
  }
}

function chartData(memory: Memory, isAlive: boolean, trans: Trans): IChartData | null {
  const { samples, limit_bytes, limit_name, died, marks } = memory;
  const first = samples[0];
  const last = samples[samples.length - 1];
  if (first === undefined || last === undefined) {
    return null;
  }
  const values = samples.map(([, value]) => value);
  const peak = values.reduce<number | null>(
    (highest, value) => (value !== null && value > (highest ?? -1) ? value : highest),
    null
  );
  const limitLabel = [limit_name ?? trans.__('limit'), humanBytes(limit_bytes)].join(' ');
  const end = Math.max(last[0], died ?? 0);
  return {
    points: { times: samples.map(([time]) => time), values },
    range: [first[0], end > first[0] ? end : first[0] + 1],
    limit: limit_bytes === null ? null : { value: limit_bytes, label: limitLabel },
    marks,
    end: died === null ? null : { time: died, label: endLabel(died, isAlive, trans) },
    description:
      limit_bytes === null
        ? trans.__('Memory of the kernel before its end: highest %1', humanBytes(peak))
        : trans.__(
            'Memory of the kernel before its end: highest %1; %2',
            humanBytes(peak),
            limitLabel
          )
  };
}

function endLabel(died: number, isAlive: boolean, trans: Trans): string {
  return isAlive ? trans.__('child ended %1', clock(died)) : trans.__('ended %1', clock(died));
}
