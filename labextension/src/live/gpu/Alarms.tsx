import * as React from 'react';

import { Notice } from '../../parts/Notice';
import { dayAndTime } from '../../when';
import type { GpuDevice } from '../../wire';
import type { Trans } from '../../words';

import { titleOf } from './texts';

/** What is wrong with the card. A lost one has something to say in any case. */
export function Alarms(props: Alarms.IProps): React.JSX.Element {
  const { device, now, trans } = props;
  const isTold = device.alarms.some(alarm => alarm.severity === 'error');
  return (
    <>
      {device.lost && !isTold && (
        <Notice
          kind="error"
          text={trans.__(
            '%1 is lost: its driver cannot reach it any more.',
            titleOf(device, trans)
          )}
          fix={trans.__(
            'Kernels that used it must be restarted. Often the machine needs a restart too.'
          )}
        />
      )}
      {device.alarms.map(alarm => (
        <Notice
          key={`${alarm.text} ${alarm.since}`}
          kind={alarm.severity}
          text={alarm.text}
          fix={alarm.fix}
        >
          {alarm.since !== null && (
            <div className="jp-TfGuard-quiet">
              {trans.__('since %1', dayAndTime(alarm.since, now, trans))}
            </div>
          )}
        </Notice>
      ))}
    </>
  );
}

export namespace Alarms {
  export interface IProps {
    readonly device: GpuDevice;
    /** Unix seconds. */
    readonly now: number;
    readonly trans: Trans;
  }
}
