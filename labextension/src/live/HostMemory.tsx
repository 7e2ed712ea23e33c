import * as React from 'react';

import type { GuardModel } from '../model';
import { Boundary } from '../parts/Boundary';
import { Section } from '../parts/Section';
import { useRead } from '../parts/useRead';
import { UNKNOWN } from '../units';
import type { Host } from '../wire';
import type { Trans } from '../words';

import { limitNotice } from './forecastText';
import { limitText, memoryText, sharesText } from './hostText';
import { memoryShares } from './memory';
import type { IShares } from './memory';
import { MemoryChart } from './MemoryChart';
import { StopRow } from './StopRow';

/** Memory in use against the limit of the current kernel, and who holds it. */
export function HostMemory(props: HostMemory.IProps): React.JSX.Element | null {
  const { model, trans } = props;
  const { isNearStop, kernel } = model;
  if (kernel === null) {
    return null;
  }
  const { guard, host } = kernel;
  return (
    <Section name="HostMemory" title={trans.__('Host memory')}>
      <div className="jp-TfGuard-row jp-mod-wrap">
        <Moving model={model} className="jp-TfGuard-big" write={host => memoryText(host, trans)} />
        <Moving model={model} className={QUIET} write={host => limitText(host, trans)} />
      </div>
      <Curve model={model} trans={trans} />
      <Boundary>
        <Holders model={model} trans={trans} />
      </Boundary>
      {guard.stop !== null && <StopRow isNear={isNearStop} stop={guard.stop} trans={trans} />}
      {!isNearStop && <LimitNotice host={host} trans={trans} />}
    </Section>
  );
}

/** When memory will reach the limit, or that it is near. A status, not an alarm. */
export function LimitNotice({
  host,
  trans
}: {
  host: Host;
  trans: Trans;
}): React.JSX.Element | null {
  const notice = limitNotice(host, trans);
  return notice === null ? null : (
    <div className="jp-TfGuard-Notice jp-mod-warning jp-TfGuard-LimitNotice">
      <span aria-hidden="true">▲</span>
      <div>
        {/* Screen readers announce only a change of the first words, not each new rate. */}
        <b role="status">{notice.head}</b> {notice.rest}
      </div>
    </div>
  );
}

/** Who holds the memory in use; the details of the kernel can be expanded. */
function Holders({ model, trans }: HostMemory.IProps): React.JSX.Element {
  const host = model.kernel?.host ?? null;
  const shares = host && memoryShares(host, model.others);
  return (
    <>
      {shares !== null && <Bar shares={shares} whole={host?.limit?.bytes ?? 0} />}
      <details className="jp-TfGuard-Folded">
        <summary className={QUIET}>
          <Moving
            model={model}
            className=""
            write={host =>
              sharesText(memoryShares(host, model.others), trans) || trans.__('this kernel')
            }
          />
        </summary>
        <Moving
          model={model}
          className={`${QUIET} jp-TfGuard-resident`}
          write={host => host.details.join(' · ')}
        />
      </details>
    </>
  );
}

/** Hidden from screen readers: the text below has the same content. */
function Bar({ shares, whole }: { shares: IShares; whole: number }): React.JSX.Element {
  const part = (bytes: number): React.CSSProperties => ({ width: `${(100 * bytes) / whole}%` });
  return (
    <div className="jp-TfGuard-bar jp-mod-shares" aria-hidden="true">
      <i className="jp-mod-this" style={part(shares.own)} />
      <i className="jp-mod-notebook" style={part(shares.ofOthers)} />
      <i className="jp-mod-rest" style={part(shares.rest)} />
    </div>
  );
}

/** The chart; redrawn when the series changes, not with each message. */
function Curve({ model, trans }: HostMemory.IProps): React.JSX.Element {
  useRead(model.moved, () => model.series.version);
  const { kernel, marks, series } = model;
  const { forecast = null, limit = null } = kernel?.host ?? {};
  return (
    <MemoryChart
      curve={{ series, marks, limit, forecast }}
      title={trans.__('Memory in use')}
      trans={trans}
    />
  );
}

const QUIET = 'jp-TfGuard-quiet jp-TfGuard-small';

/** Text that updates with each `number` message without redrawing the section. */
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
    readonly model: Pick<GuardModel, 'isNearStop' | 'kernel' | 'marks' | 'others' | 'series'> &
      Partial<Pick<GuardModel, 'moved'>>;
    readonly trans: Trans;
  }
}
