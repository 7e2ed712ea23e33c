import * as React from 'react';

import { Notice } from '../../parts/Notice';
import { dayAndTime } from '../../when';
import type { GpuOom } from '../../wire';
import type { Trans } from '../../words';

/** In the cell's output the lines say whose they are and what happened; here all is ours, and said above. */
function inPanel(line: string): string {
  const rest = line.replace(/^tfguard: (the GPU ran out of memory: )?/, '');
  return rest.charAt(0).toUpperCase() + rest.slice(1);
}

/** A GPU was full and the kernel lived on: what was asked, what was free, what to change. */
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
            ? trans.__('The GPU was full (%1). The kernel lives on.', when)
            : trans.__(
                'The GPU was full in cell [%1] (%2). The kernel lives on.',
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
