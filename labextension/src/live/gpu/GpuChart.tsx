import * as React from 'react';

import type { Series } from '../../series';
import type { GpuDevice } from '../../wire';
import type { Trans } from '../../words';

import { MemoryChart } from '../MemoryChart';

import { titleOf } from './texts';

/** Memory of this kernel on a GPU in the last minutes, and the total memory of the GPU. */
export function GpuChart(props: GpuChart.IProps): React.JSX.Element | null {
  const { device, series, trans } = props;
  const bytes = device.memory_total_bytes;
  const name = titleOf(device, trans);
  return series === undefined ? null : (
    <MemoryChart
      curve={{ series, marks: [], limit: bytes === null ? null : { bytes, name }, forecast: null }}
      title={trans.__('Memory of this kernel on %1', name)}
      height={84}
      trans={trans}
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
