import * as React from 'react';

import type { GuardModel } from '../model';
import { Boundary } from '../parts/Boundary';
import { Section } from '../parts/Section';
import { useRead } from '../parts/useRead';
import { UNKNOWN } from '../units';
import type { Host } from '../wire';
import type { Trans } from '../words';

import { limitNotice } from './forecastText';
import { limitText, memoryDetails, memoryText, sharesText } from './hostText';
import { memoryShares } from './memory';
import type { IShares } from './memory';
import { MemoryChart } from './MemoryChart';

/** What is in use of the limit that binds the current kernel, and who holds it. */
export function HostMemory(props: HostMemory.IProps): React.JSX.Element | null {
  const { model, trans } = props;
  const { kernel } = model;
  if (kernel === null) {
    return null;
  }
  const { host } = kernel;
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
      <LimitNotice host={host} trans={trans} />
    </Section>
  );
}

/** What is to be said of the limit ahead: when it comes, or that it is near. Calm: no alarm, a state. */
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
        {/* Read out only when the first words change, not with each new rate. */}
        <b role="status">{notice.head}</b> {notice.rest}
      </div>
    </div>
  );
}

/** Who holds what is in use; the numbers of the kernel itself unfold. */
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
          write={host => memoryDetails(host, trans)}
        />
      </details>
    </>
  );
}

/** The words below say the same. */
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

/** The chart, which moves with the series and not with each number. */
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
    readonly model: Pick<GuardModel, 'kernel' | 'marks' | 'others' | 'series'> &
      Partial<Pick<GuardModel, 'moved'>>;
    readonly trans: Trans;
  }
}
