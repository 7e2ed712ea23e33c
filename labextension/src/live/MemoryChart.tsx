import type { ISignal } from '@lumino/signaling';
import * as React from 'react';

import { h } from '../parts/h';
import type { IChartData } from '../chart/timeChart';
import type { GuardModel } from '../model';
import { ChartView } from '../parts/ChartView';
import { useRead } from '../parts/useRead';
import { bytesOfLimit, humanBytes, tickBytes } from '../units';
import { clock } from '../when';
import type { Host } from '../wire';
import type { Trans } from '../words';

import {
  AHEAD_SECONDS,
  forecastLine,
  lastMinutes,
  limitLevel,
  WINDOW_SECONDS
} from './lastMinutes';

/** What moves less than about a pixel is not drawn anew. */
const STEP_SECONDS = 0.9;
const STEP_FRACTION = 0.008;

/** The last five minutes of a kernel's memory, with its limit, the cells that ran, and what is foreseen. */
export function MemoryChart(props: MemoryChart.IProps): React.JSX.Element | null {
  const { height = 128, moved, read, title, trans } = props;
  const drawn = React.useRef<{ curve: MemoryChart.ICurve; data: IChartData } | null>(null);
  const data = useRead(moved, () => {
    const curve = read();
    const { end } = curve.series;
    if (end === null) {
      drawn.current = null;
    } else if (drawn.current === null || isOther(drawn.current.curve, drawn.current.data, curve)) {
      drawn.current = { curve, data: chartData(curve, end, title, trans) };
    }
    return drawn.current?.data ?? null;
  });
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
    readonly series: Pick<GuardModel['series'], 'times' | 'values' | 'end'>;
    readonly marks?: GuardModel['marks'];
    /** `used_bytes`: of what it counts, where that is not what is drawn. */
    readonly limit: {
      readonly bytes: number;
      readonly name: string;
      readonly used_bytes?: number | null;
    } | null;
    readonly forecast?: Host['forecast'];
  }

  export interface IProps {
    /** What to draw, as it is now. */
    readonly read: () => ICurve;
    /** Emitted when `read` may say another thing without a new drawing of what is around. */
    readonly moved?: ISignal<unknown, unknown> | undefined;
    /** What the line is, for those who do not see it. */
    readonly title: string;
    readonly height?: number;
    readonly trans: Trans;
  }
}

/** Whether a picture of `now` would look different from the one that was drawn. */
function isOther(old: MemoryChart.ICurve, data: IChartData, now: MemoryChart.ICurve): boolean {
  const { times, values } = data.points;
  const [lastTime, lastValue] = [times[times.length - 1] ?? 0, values[values.length - 1] ?? null];
  const value = newest(now.series);
  const time = now.series.end ?? 0;
  return (
    old.marks !== now.marks ||
    old.limit?.bytes !== now.limit?.bytes ||
    old.limit?.name !== now.limit?.name ||
    !old.forecast !== !now.forecast ||
    (times[0] ?? 0) > (now.series.times[0] ?? 0) + WINDOW_SECONDS ||
    time < lastTime ||
    time - lastTime >= STEP_SECONDS ||
    (value === null) !== (lastValue === null) ||
    Math.abs((value ?? 0) - (lastValue ?? 0)) > STEP_FRACTION * highest(values)
  );
}

/** The axis reaches at least so far. */
function highest(values: IChartData['points']['values']): number {
  return values.reduce<number>((high, value) => Math.max(high, value ?? 0), 0);
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
  const { bytes, name, used_bytes } = limit;
  return typeof used_bytes === 'number'
    ? trans.__(
        '%1, last 5 minutes: now %2; %3 of %4, %5',
        title,
        now,
        ...bytesOfLimit(used_bytes, bytes),
        name
      )
    : trans.__('%1, last 5 minutes: now %2 of %3, %4', title, now, humanBytes(bytes), name);
}
