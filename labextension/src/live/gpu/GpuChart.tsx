import * as React from 'react';

import type { Series } from '../../series';
import type { GpuDevice } from '../../wire';
import type { Trans } from '../../trans';

import { Drawn } from '../../parts/Drawn';
import { memoryChart } from '../memoryCurve';

import { titleOf } from './texts';

const NO_MARKS: readonly [] = [];

/** Memory of this kernel on a GPU in the last minutes, and the total memory of the GPU. */
export function GpuChart(props: GpuChart.IProps): React.JSX.Element | null {
  const { device, series, trans } = props;
  const bytes = device.memory_total_bytes;
  const name = titleOf(device, trans);
  const options = {
    height: 84,
    endLabels: [trans.__('−5 min'), trans.__('now')] as const,
    title: trans.__('Memory of this kernel on %1', name)
  };
  const limit = bytes === null ? null : { bytes, name };
  return series === undefined ? null : (
    <Drawn
      make={host => memoryChart(host, options, trans)}
      read={() => ({ series, marks: NO_MARKS, limit, forecast: null })}
    />
  );
}

export namespace GpuChart {
  export interface IProps {
    readonly device: GpuDevice;
    readonly series: Series | undefined;
    readonly trans: Trans;
  }
}
