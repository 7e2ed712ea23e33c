import * as React from 'react';

import type { ShownOutOfMemory } from '../currentKernel';
import { CodeBlock } from '../parts/CodeBlock';
import { Notice } from '../parts/Notice';
import { dayAndTime } from '../when';
import type { Trans } from '../trans';

/** Lines of code in a sentence begin with this. */
const INDENT = '    ';

/** Memory ran out in a cell, or will, and the kernel is still running: what happened, and what to change. */
export function OutOfMemoryNotice(props: {
  readonly copy: CodeBlock.ICopy;
  readonly event: ShownOutOfMemory;
  /** Unix seconds. */
  readonly now: number;
  readonly onDismiss: () => void;
  readonly trans: Trans;
}): React.JSX.Element {
  const { copy, event, now, onDismiss, trans } = props;
  return (
    <section className="jp-TfGuard-Section jp-TfGuard-OutOfMemory" aria-label={trans.__('Memory')}>
      <Notice kind="warning" text={titleOf(event, now, trans)}>
        <ul className="jp-TfGuard-list">
          {event.lines.map((line, index) => (
            <Line key={index} line={line} copy={copy} />
          ))}
        </ul>
        <button className="jp-TfGuard-link" type="button" onClick={onDismiss}>
          {trans.__('Dismiss')}
        </button>
      </Notice>
    </section>
  );
}

function titleOf(event: ShownOutOfMemory, now: number, trans: Trans): string {
  const { execution_count: count, kind, time } = event;
  const when = dayAndTime(time, now, trans);
  const cell = count === null ? trans.__('a cell') : trans.__('cell [%1]', count);
  if (kind === 'leak') return trans.__('Memory grows steadily in %1 (%2).', cell, when);
  if (kind === 'gpu_oom') {
    return trans.__(
      'The GPU ran out of memory in %1 (%2). The kernel is still running.',
      cell,
      when
    );
  }
  switch (event.what) {
    case 'not_started':
      return trans.__(
        'A run in %1 was not started (%2): it needs more memory than is available.',
        cell,
        when
      );
    case 'beside':
      return trans.__(
        'Memory was nearly full: tfguard stopped what an earlier cell had left running (%1).',
        when
      );
    case 'refused':
      return trans.__(
        'A request for memory in %1 was refused (%2). The kernel is still running.',
        cell,
        when
      );
    default:
      return trans.__(
        'Memory was nearly full in %1 (%2). The kernel is still running.',
        cell,
        when
      );
  }
}

/** A sentence, and the code that belongs to it. */
function Line({ copy, line }: { copy: CodeBlock.ICopy; line: string }): React.JSX.Element {
  const rows = inPanel(line).split('\n');
  const code = rows.filter(row => row.startsWith(INDENT)).map(row => row.slice(INDENT.length));
  return (
    <li>
      {rows.filter(row => !row.startsWith(INDENT)).join(' ')}
      {code.length > 0 && <CodeBlock code={code.join('\n')} copy={copy} />}
    </li>
  );
}

/**
 * Removes the prefix of the lines in the cell output: the notice has it in its title. Other lines may begin with code,
 * whose case must not change.
 */
function inPanel(line: string): string {
  const rest = line.replace(/^tfguard:? (the GPU ran out of memory: )?/, '');
  return rest === line ? line : rest.charAt(0).toUpperCase() + rest.slice(1);
}
