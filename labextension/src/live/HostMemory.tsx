import * as React from 'react';

import type { GuardModel } from '../model';
import { Notice } from '../parts/Notice';
import { Section } from '../parts/Section';
import { humanBytes, UNKNOWN } from '../units';
import type { Host, KernelState } from '../wire';
import type { Trans } from '../words';

import { isNearLimit } from './memory';
import { MemoryChart } from './MemoryChart';

/** What the current kernel holds of the host's memory, against the limit that will end it. */
export function HostMemory(props: HostMemory.IProps): React.JSX.Element {
  const { kernel, series, marks, trans } = props;
  const { host } = kernel;
  return (
    <Section name="HostMemory" title={trans.__('Host memory, this kernel')}>
      <div className="jp-TfGuard-row jp-mod-wrap">
        <span className="jp-TfGuard-big">{humanBytes(host.rss_bytes)}</span>
        <span className="jp-TfGuard-quiet">{limitText(host, trans)}</span>
      </div>
      <MemoryChart series={series} marks={marks} limit={host.limit} trans={trans} />
      <MemoryDetails host={host} trans={trans} />
      {isNearLimit(host) && (
        <Notice
          kind="warning"
          text={trans.__('More than 90 % of the limit is used. At the limit the kernel is killed.')}
        />
      )}
    </Section>
  );
}

export namespace HostMemory {
  export interface IProps {
    readonly kernel: KernelState;
    readonly series: GuardModel['series'];
    readonly marks: GuardModel['marks'];
    readonly trans: Trans;
  }
}

function limitText({ limit }: Host, trans: Trans): string {
  return limit === null
    ? trans.__('limit not known')
    : trans.__('of %1 · %2', humanBytes(limit.bytes), limit.name);
}

/** Peak and rest in one grey line; children and swap only where there are any. */
function MemoryDetails({ host, trans }: { host: Host; trans: Trans }): React.JSX.Element {
  const parts = [
    trans.__('peak %1', humanBytes(host.peak_bytes)),
    ...((host.children_rss_bytes ?? 0) > 0
      ? [trans.__('children %1', humanBytes(host.children_rss_bytes))]
      : []),
    ...((host.swap_bytes ?? 0) > 0
      ? [trans.__('swapped out %1', humanBytes(host.swap_bytes))]
      : []),
    ...(host.available_bytes === null
      ? []
      : [trans.__('%1 still free', humanBytes(host.available_bytes))])
  ];
  const known = parts.filter(part => !part.includes(UNKNOWN));
  return <div className="jp-TfGuard-quiet jp-TfGuard-small">{known.join(' · ')}</div>;
}
