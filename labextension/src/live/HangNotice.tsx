import * as React from 'react';

import { Notice } from '../parts/Notice';
import { humanSpan } from '../when';
import type { Hang } from '../wire';
import type { Trans } from '../words';

/** A kernel that stands still: for how long, what it waits for, and a look at its threads. */
export function HangNotice(props: HangNotice.IProps): React.JSX.Element {
  const { hang, now, onShowStacks, trans } = props;
  const span = humanSpan(Math.max(0, now - hang.since), trans);
  return (
    <section className="jp-TfGuard-Section jp-TfGuard-Hang" aria-label={trans.__('Standstill')}>
      <Notice
        kind="warning"
        text={
          hang.in_fit
            ? trans.__('The cell stands still: no step, and no work on processor, disk or GPU.')
            : trans.__('The cell stands still: no work on processor, disk or GPU.')
        }
        rest={trans.__('No progress for %1.', span)}
        fix={hang.text === null ? null : trans.__('Its main thread is %1.', hang.text)}
      >
        {hang.has_stacks && (
          <button className="jp-TfGuard-link" type="button" onClick={onShowStacks}>
            {trans.__('Show what its threads are doing')}
          </button>
        )}
        <div className="jp-TfGuard-quiet">
          {trans.__(
            'It may wait for something elsewhere. If you restart it, a report keeps what is known.'
          )}
        </div>
      </Notice>
    </section>
  );
}

export namespace HangNotice {
  export interface IProps {
    readonly hang: Hang;
    /** Unix seconds, by the clock that `hang` was told by. */
    readonly now: number;
    readonly onShowStacks: () => void;
    readonly trans: Trans;
  }
}
