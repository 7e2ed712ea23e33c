import * as React from 'react';

import { Notice } from '../parts/Notice';
import { humanSpan } from '../when';
import type { Hang } from '../wire';
import type { Trans } from '../words';

function whatHappens(hang: Hang, trans: Trans): string {
  if (hang.computes) {
    return trans.__('The fit makes no step, although the kernel is computing.');
  }
  return hang.in_fit
    ? trans.__('The cell seems to hang: no training step, and no CPU, disk or GPU activity.')
    : trans.__('The cell seems to hang: no CPU, disk or GPU activity.');
}

/** A kernel that hangs: for how long, what it waits for, where Python is, and a button for its stack traces. */
export function HangNotice(props: HangNotice.IProps): React.JSX.Element {
  const { hang, now, onShowStacks, trans } = props;
  const span = humanSpan(Math.max(0, now - hang.since), trans);
  const where = [
    hang.text === null ? null : trans.__('Its main thread is %1.', hang.text),
    hang.line === null ? null : trans.__('Python is at %1.', hang.line)
  ].filter(sentence => sentence !== null);
  return (
    <section className="jp-TfGuard-Section jp-TfGuard-Hang" aria-label={trans.__('Hang')}>
      <Notice
        kind="warning"
        text={whatHappens(hang, trans)}
        rest={trans.__('No progress for %1.', span)}
        fix={where.length === 0 ? null : where.join(' ')}
      >
        {hang.has_stacks && (
          <button className="jp-TfGuard-link" type="button" onClick={onShowStacks}>
            {trans.__('Show stack traces')}
          </button>
        )}
        <div className="jp-TfGuard-quiet">
          {hang.computes
            ? trans.__(
                'A pipeline that yields nothing does this, and so do very slow data. If you restart the kernel, TF Guard saves a report.'
              )
            : trans.__(
                'It may be waiting for something outside the kernel. If you restart the kernel, TF Guard saves a report.'
              )}
        </div>
      </Notice>
    </section>
  );
}

export namespace HangNotice {
  export interface IProps {
    readonly hang: Hang;
    /** Unix seconds, by the clock of `hang.since`. */
    readonly now: number;
    readonly onShowStacks: () => void;
    readonly trans: Trans;
  }
}
