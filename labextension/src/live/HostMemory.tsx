import * as React from 'react';

import type { GuardModel } from '../model';
import { Section } from '../parts/Section';
import { useRead } from '../parts/useRead';
import { humanBytes, UNKNOWN } from '../units';
import type { Host } from '../wire';
import type { Trans } from '../words';

import { limitText, memoryDetails } from './hostText';
import { LimitNotice } from './LimitNotice';
import { MemoryChart } from './MemoryChart';

/** What the current kernel holds of the host's memory, against the limit. */
export function HostMemory(props: HostMemory.IProps): React.JSX.Element | null {
  const { model, trans } = props;
  const { kernel } = model;
  if (kernel === null) {
    return null;
  }
  const { host } = kernel;
  return (
    <Section name="HostMemory" title={trans.__('Host memory, this kernel')}>
      <div className="jp-TfGuard-row jp-mod-wrap">
        <Moving
          model={model}
          className="jp-TfGuard-big"
          write={host => humanBytes(host.rss_bytes)}
        />
        <Moving model={model} className={QUIET} write={host => limitText(host, trans)} />
      </div>
      <Curve model={model} trans={trans} />
      <div>
        <Moving model={model} className={QUIET} write={host => memoryDetails(host, trans)} />
      </div>
      <LimitNotice host={host} trans={trans} />
    </Section>
  );
}

/** The chart, which moves with the series and not with each number. */
function Curve({ model, trans }: HostMemory.IProps): React.JSX.Element {
  useRead(model.moved, () => model.series.version);
  const host = model.kernel?.host;
  return (
    <MemoryChart
      series={model.series}
      marks={model.marks}
      limit={host?.limit ?? null}
      forecast={host?.forecast ?? null}
      title={trans.__('Memory of this kernel')}
      trans={trans}
    />
  );
}

const QUIET = 'jp-TfGuard-quiet jp-TfGuard-small';

/** Moves with the numbers, and nothing around it: all of them are of one moment. */
function Moving(props: Moving.IProps): React.JSX.Element {
  const { className, model, write } = props;
  const text = useRead(model.moved, () =>
    model.kernel === null ? UNKNOWN : write(model.kernel.host)
  );
  return <span className={className}>{text}</span>;
}

namespace Moving {
  export interface IProps extends Pick<HostMemory.IProps, 'model'> {
    readonly className: string;
    readonly write: (host: Host) => string;
  }
}

export namespace HostMemory {
  export interface IProps {
    readonly model: Pick<GuardModel, 'kernel' | 'marks' | 'series'> &
      Partial<Pick<GuardModel, 'moved'>>;
    readonly trans: Trans;
  }
}
