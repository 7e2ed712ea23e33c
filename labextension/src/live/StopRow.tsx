import * as React from 'react';

import type { Stop } from '../wire';
import type { Trans } from '../words';

import { stopSign, stopText } from './stopText';

/** Whether the guard stops cells that fill the memory, at what threshold, and what does not work here. */
export function StopRow(props: {
  /** Whether memory is near the threshold. */
  readonly isNear: boolean;
  readonly stop: Stop;
  readonly trans: Trans;
}): React.JSX.Element {
  const { isNear, stop, trans } = props;
  return (
    <div className="jp-TfGuard-Stop jp-TfGuard-small">
      <div className={isNear ? 'jp-TfGuard-Notice jp-mod-warning' : 'jp-TfGuard-quiet'}>
        <span aria-hidden="true">{stopSign(stop, isNear)}</span>{' '}
        <span role="status">{stopText(stop, isNear, trans)}</span>
      </div>
      {stop.notes.map(note => (
        <div key={note} className="jp-TfGuard-quiet jp-TfGuard-under">
          {note}
        </div>
      ))}
    </div>
  );
}
