import * as React from 'react';

import type { Host } from '../wire';
import type { Trans } from '../words';

import { limitNotice } from './forecastText';

/** What is to be said of the limit ahead: when it comes, or that it is near. Calm: no alarm, a state. */
export function LimitNotice(props: LimitNotice.IProps): React.JSX.Element | null {
  const notice = limitNotice(props.host, props.trans);
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

export namespace LimitNotice {
  export interface IProps {
    readonly host: Host;
    readonly trans: Trans;
  }
}
