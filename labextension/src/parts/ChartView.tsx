import * as React from 'react';

import { TimeChart } from '../chart/timeChart';
import type { IChartOptions } from '../chart/plot';
import type { IChartData } from '../chart/timeChart';

/** A chart as a React component: created once with the first options, updated with new data. */
export function ChartView(props: ChartView.IProps): React.JSX.Element {
  const { data, options } = props;
  const host = React.useRef<HTMLDivElement>(null);
  const chart = React.useRef<TimeChart | null>(null);
  const firstOptions = React.useRef(options);
  React.useEffect(() => {
    if (host.current === null) {
      return undefined;
    }
    const made = new TimeChart(host.current, firstOptions.current);
    chart.current = made;
    return () => {
      chart.current = null;
      made.dispose();
    };
  }, []);
  React.useEffect(() => {
    chart.current?.update(data);
  }, [data]);
  return <div ref={host} />;
}

export namespace ChartView {
  export interface IProps {
    readonly data: IChartData;
    readonly options: IChartOptions;
  }
}
