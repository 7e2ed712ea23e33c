import * as React from 'react';

import { ChartView } from '../parts/ChartView';
import type { Trans } from '../words';

import { memoryChartOptions, memoryData } from './memoryCurve';
import type { IMemoryCurve } from './memoryCurve';

/** Memory of a kernel in the last five minutes, with its limit, cells and forecast. */
export function MemoryChart(props: MemoryChart.IProps): React.JSX.Element | null {
  const { curve, height = 128, title, trans } = props;
  const { forecast, limit, marks, series } = curve;
  // The series changes in place; its version shows when.
  const data = React.useMemo(
    () =>
      memoryData(curve, (now, whole) =>
        whole === null
          ? trans.__('%1, last 5 minutes: now %2', title, now)
          : trans.__('%1, last 5 minutes: now %2 of %3', title, now, whole)
      ),
    [series, series.version, marks, limit?.bytes, limit?.name, !forecast, title, trans]
  );
  return data === null ? null : (
    <ChartView
      data={data}
      options={memoryChartOptions(height, [trans.__('−5 min'), trans.__('now')])}
    />
  );
}

export namespace MemoryChart {
  export interface IProps {
    readonly curve: IMemoryCurve;
    /** What the line shows, for screen readers. */
    readonly title: string;
    readonly height?: number;
    readonly trans: Trans;
  }
}
