import * as React from 'react';

import { Notice } from '../parts/Notice';
import { humanSpan } from '../when';
import type { Hang } from '../wire';
import type { Trans } from '../trans';

/** A kernel that hangs: for how long, what it waits for, where Python is, and a button for its stack traces. */
export function HangNotice(props: HangNotice.IProps): React.JSX.Element {
  const { hang, now, onShowStacks, trans } = props;
  const span = humanSpan(Math.max(0, now - hang.since), trans);
  return (
    <section className="jp-TfGuard-Section jp-TfGuard-Hang" aria-label={trans.__('Hang')}>
      <Notice
        kind="warning"
        text={whatHappens(hang, trans)}
        rest={trans.__('No progress for %1.', span)}
        fix={hang.worker_killed === null ? whereItIs(hang, trans) : whatToDo(trans)}
      >
        {hang.worker_killed?.map(fact => (
          <div key={fact} className="jp-TfGuard-quiet">
            {fact}.
          </div>
        ))}
        {hang.has_stacks && (
          <button className="jp-TfGuard-link" type="button" onClick={onShowStacks}>
            {trans.__('Show stack traces')}
          </button>
        )}
        <div className="jp-TfGuard-quiet">{whatItMayBe(hang, trans)}</div>
      </Notice>
    </section>
  );
}

function whatHappens(hang: Hang, trans: Trans): string {
  if (hang.worker_killed !== null) {
    return hang.in_fit
      ? trans.__(
          'A worker process was killed because memory ran out. The training waits for its answer and will never get it.'
        )
      : trans.__(
          'A worker process was killed because memory ran out. The cell seems to wait for its answer, which never comes.'
        );
  }
  if (hang.computes) {
    return trans.__('The fit makes no step, although the kernel is computing.');
  }
  return hang.in_fit
    ? trans.__('The cell seems to hang: no training step, and no CPU, disk or GPU activity.')
    : trans.__('The cell seems to hang: no CPU, disk or GPU activity.');
}

function whereItIs(hang: Hang, trans: Trans): string | null {
  const where = [
    hang.text === null ? null : trans.__('Its main thread is %1.', hang.text),
    hang.line === null ? null : trans.__('Python is at %1.', hang.line)
  ].filter(sentence => sentence !== null);
  return where.length === 0 ? null : where.join(' ');
}

function whatToDo(trans: Trans): string {
  return trans.__(
    'Interrupt the kernel; restart it if the cell still waits. Then use fewer workers, or give each one less data.'
  );
}

function whatItMayBe(hang: Hang, trans: Trans): string {
  if (hang.worker_killed !== null) {
    return trans.__('If you restart the kernel, TF Guard saves a report.');
  }
  return hang.computes
    ? trans.__(
        'A pipeline that yields nothing does this, and so do very slow data. If you restart the kernel, TF Guard saves a report.'
      )
    : trans.__(
        'It may be waiting for something outside the kernel. If you restart the kernel, TF Guard saves a report.'
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
