import * as React from 'react';

import { Notice } from '../../parts/Notice';
import { dayAndTime } from '../../when';
import type { GpuOom } from '../../wire';
import type { Trans } from '../../words';

/** Removes the prefix of the lines in the cell output: the notice has it in its title. */
function inPanel(line: string): string {
  const rest = line.replace(/^tfguard: (the GPU ran out of memory: )?/, '');
  return rest.charAt(0).toUpperCase() + rest.slice(1);
}

/** A GPU out-of-memory error that the kernel survived: requested, free, and what to change. */
export function GpuOomNotice(props: GpuOomNotice.IProps): React.JSX.Element {
  const { oom, now, onDismiss, trans } = props;
  const when = dayAndTime(oom.time, now, trans);
  return (
    <section
      className="jp-TfGuard-Section jp-TfGuard-GpuOom"
      aria-label={trans.__('GPU out of memory')}
    >
      <Notice
        kind="warning"
        text={
          oom.execution_count === null
            ? trans.__('The GPU ran out of memory (%1). The kernel is still running.', when)
            : trans.__(
                'The GPU ran out of memory in cell [%1] (%2). The kernel is still running.',
                oom.execution_count,
                when
              )
        }
      >
        <ul className="jp-TfGuard-list">
          {oom.lines.map((line, index) => (
            <li key={index}>{inPanel(line)}</li>
          ))}
        </ul>
        <button className="jp-TfGuard-link" type="button" onClick={onDismiss}>
          {trans.__('Dismiss')}
        </button>
      </Notice>
    </section>
  );
}

export namespace GpuOomNotice {
  export interface IProps {
    readonly oom: GpuOom;
    /** Unix seconds. */
    readonly now: number;
    readonly onDismiss: () => void;
    readonly trans: Trans;
  }
}
