import * as React from 'react';

import { Section } from '../parts/Section';
import { humanBytes, signedBytes } from '../units';
import { humanSpan } from '../when';
import type { Cell } from '../wire';
import type { Trans } from '../trans';

/** Cells with smaller changes are not listed. */
const WORTH_BYTES = 2 ** 20;

/** The cells that used most memory: the rise in each, and what it kept. */
export function CellsByMemory(props: CellsByMemory.IProps): React.JSX.Element | null {
  const { cells, trans } = props;
  const shown = cells.filter(isWorthALine);
  if (shown.length === 0) {
    return null;
  }
  return (
    <Section name="Cells" title={trans.__('Cells by memory')}>
      <ul className="jp-TfGuard-list">
        {shown.map((cell, index) => (
          <CellRow key={cell.execution_count ?? `at ${index}`} cell={cell} trans={trans} />
        ))}
      </ul>
    </Section>
  );
}

export namespace CellsByMemory {
  export interface IProps {
    /** Largest rise first. */
    readonly cells: readonly Cell[];
    readonly trans: Trans;
  }
}

function isWorthALine(cell: Cell): boolean {
  return [
    cell.host_peak_bytes,
    cell.host_kept_bytes,
    cell.gpu_peak_bytes,
    cell.gpu_kept_bytes
  ].some(bytes => bytes !== null && Math.abs(bytes) >= WORTH_BYTES);
}

/** Host memory on the first line; GPU memory on a second line if known. */
function CellRow({ cell, trans }: { cell: Cell; trans: Trans }): React.JSX.Element {
  const { execution_count, gpu_kept_bytes, gpu_peak_bytes, head, running, seconds } = cell;
  const name = `[${execution_count ?? '–'}] ${head ?? ''}`.trimEnd();
  const hint = seconds === null ? name : `${name}\n${humanSpan(seconds, trans)}`;
  const hasGpu = gpu_peak_bytes !== null || gpu_kept_bytes !== null;
  return (
    <li>
      <div className="jp-TfGuard-row jp-TfGuard-small">
        <code className="jp-TfGuard-name" title={hint}>
          {name}
        </code>
        <Change
          peak={cell.host_peak_bytes}
          kept={cell.host_kept_bytes}
          running={running}
          trans={trans}
        />
      </div>
      {hasGpu && (
        <div className="jp-TfGuard-row jp-TfGuard-small">
          <span className="jp-TfGuard-quiet jp-TfGuard-under">{trans.__('GPU')}</span>
          <Change peak={gpu_peak_bytes} kept={gpu_kept_bytes} running={running} trans={trans} />
        </div>
      )}
    </li>
  );
}

/** `+3.10 GiB peak · 410 MiB kept`, `+18 MiB peak · 71 MiB freed`; the second part appears when the cell has ended. */
function Change(props: {
  readonly peak: number | null;
  readonly kept: number | null;
  readonly running: boolean;
  readonly trans: Trans;
}): React.JSX.Element {
  const { kept, peak, running, trans } = props;
  return (
    <span title={trans.__('Peak increase while the cell ran, and how much of it the cell kept.')}>
      {trans.__('%1 peak', signedBytes(peak))}
      <span className="jp-TfGuard-quiet">
        {' · '}
        {running ? trans.__('running') : keptText(kept, trans)}
      </span>
    </span>
  );
}

function keptText(bytes: number | null, trans: Trans): string {
  if (bytes === 0) {
    return trans.__('nothing kept');
  }
  return bytes !== null && bytes < 0
    ? trans.__('%1 freed', humanBytes(-bytes))
    : trans.__('%1 kept', humanBytes(bytes));
}
