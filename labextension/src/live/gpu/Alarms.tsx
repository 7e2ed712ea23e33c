import * as React from 'react';

import { Notice } from '../../parts/Notice';
import { dayAndTime } from '../../when';
import type { GpuDevice } from '../../wire';
import type { Trans } from '../../trans';

import { titleOf } from './texts';

/** Problems of the GPU. A lost GPU always has a notice. */
export function Alarms(props: Alarms.IProps): React.JSX.Element {
  const { device, now, trans } = props;
  const hasError = device.alarms.some(alarm => alarm.severity === 'error');
  return (
    <>
      {device.lost && !hasError && (
        <Notice
          kind="error"
          text={trans.__('%1 is lost: the driver can no longer reach it.', titleOf(device, trans))}
          fix={trans.__('Restart the kernels that used it. Often the machine needs a restart too.')}
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
