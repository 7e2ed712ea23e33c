import * as React from 'react';
import { describe, expect, it } from 'vitest';

import { CellsByMemory } from '../live/CellsByMemory';
import type { Cell } from '../wire';

import { GIB } from './cards';
import { render } from './render';
import { trans } from './samples';

function cell(changes: Partial<Cell> = {}): Cell {
  return {
    execution_count: 12,
    head: 'model.fit(x_train, y_train)',
    running: false,
    seconds: 41.8,
    host_peak_bytes: 3.1 * GIB,
    host_kept_bytes: 0.4 * GIB,
    gpu_peak_bytes: null,
    gpu_kept_bytes: null,
    ...changes
  };
}

function rows(...cells: Cell[]): (string | null)[] {
  const { node } = render(<CellsByMemory cells={cells} trans={trans} />);
  return [...node.querySelectorAll('.jp-TfGuard-row')].map(row => row.textContent);
}

describe('Cells by memory', () => {
  it('shows how far memory rose and what was kept', () => {
    expect(rows(cell())).toEqual(['[12] model.fit(x_train, y_train)+3.10 GiB peak · 410 MiB kept']);
  });

  it('says what was freed', () => {
    expect(rows(cell({ host_kept_bytes: -0.04 * GIB }))[0]).toContain('· 41 MiB freed');
    expect(rows(cell({ host_kept_bytes: -2 * GIB }))[0]).toContain('· 2.00 GiB freed');
    expect(rows(cell({ host_kept_bytes: 0 }))[0]).toContain('· nothing kept');
  });

  it('has a second line for the GPU, where it is known', () => {
    expect(rows(cell({ gpu_peak_bytes: 2 * GIB, gpu_kept_bytes: GIB }))[1]).toBe(
      'GPU+2.00 GiB peak · 1.00 GiB kept'
    );
    expect(rows(cell({ gpu_peak_bytes: 2 * GIB }))[1]).toBe('GPU+2.00 GiB peak · – kept');
  });

  it('marks the cell that runs, which has kept nothing yet', () => {
    expect(rows(cell({ running: true, host_kept_bytes: null }))).toEqual([
      '[12] model.fit(x_train, y_train)+3.10 GiB peak · running'
    ]);
  });

  it('shows an unknown value as a dash', () => {
    const unknown = { execution_count: null, head: null, host_peak_bytes: null };
    expect(rows(cell(unknown))).toEqual(['[–]– peak · 410 MiB kept']);
  });

  it('keeps the whole head and the time where a line is too short for them', () => {
    const { node } = render(<CellsByMemory cells={[cell()]} trans={trans} />);
    expect(node.querySelector('code')?.title).toBe('[12] model.fit(x_train, y_train)\n42 s');
  });

  it('is not there where no cell moved memory', () => {
    expect(rows()).toEqual([]);
    expect(rows(cell({ host_peak_bytes: 4096, host_kept_bytes: 0 }))).toEqual([]);
    expect(rows(cell({ host_peak_bytes: null, host_kept_bytes: null }))).toEqual([]);
    const { text } = render(<CellsByMemory cells={[]} trans={trans} />);
    expect(text).toBe('');
  });
});
