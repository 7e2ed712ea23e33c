import { beforeEach, describe, expect, it, vi } from 'vitest';

import { DeadCells } from '../postmortem/deadCells';
import { readCrashes } from '../wire';
import type { CrashEntry } from '../wire';

import { sample } from './samples';

const PATH = 'course/train.ipynb';
const KERNEL = '6f2b8a52-0f5e-4c5e-9d0b-3b7c1d4e9a10';
const CELL = 'b2f0c1d4-55aa-4c8e-9f37-0d6a1e2b3c4d';

describe('DeadCells', () => {
  let crashes: CrashEntry[];
  let first: CrashEntry;
  let kept: readonly string[];
  let cells: DeadCells;

  const at = (path: string, kernelId: string | null = null, open = [path]): string[] => [
    ...cells.of({ path, kernelId }, new Set(open)).keys()
  ];

  beforeEach(async () => {
    crashes = readCrashes(sample('crashes'));
    first = crashes[0]!;
    kept = [];
    cells = new DeadCells({
      load: async () => kept,
      save: async ids => {
        kept = ids;
      }
    });
    cells.setCrashes(crashes);
    await cells.start();
  });

  it('marks the cell that ran at the death, in its notebook only', () => {
    expect(at(PATH)).toEqual([CELL]);
    expect(at('eda.ipynb')).toEqual(['7d1f2a90']);
    expect(at('course/train-Copy1.ipynb')).toEqual([]);
  });

  it('marks nothing where no cell is known, or the kernel lives on', () => {
    cells.setCrashes([
      { ...first, cell: null },
      { ...first, cell: { cell_id: null, execution_count: 3 } },
      { ...first, kernel_alive: true }
    ]);
    expect(at(PATH)).toEqual([]);
  });

  it('shows the newest death of a cell', () => {
    const newer = { ...first, id: 'newer', died_at: '2026-11-21T03:00:00.000Z' };
    cells.setCrashes([newer, ...crashes]);
    expect(cells.of({ path: PATH, kernelId: null }, new Set()).get(CELL)?.id).toBe('newer');
  });

  it('knows a renamed notebook by its kernel, and a copy at the same kernel by its path', () => {
    expect(at('renamed.ipynb', KERNEL)).toEqual([CELL]);
    expect(at('copy.ipynb', KERNEL, ['copy.ipynb', PATH])).toEqual([]);
  });

  it('keeps a mark away that was dismissed, with the older deaths of its cell', async () => {
    const older = { ...first, id: 'older', died_at: '2026-11-20T03:00:00.000Z' };
    cells.setCrashes([...crashes, older]);
    cells.dismiss(first);
    expect(at(PATH)).toEqual([]);
    expect(kept).toEqual([first.id, 'older']);
    await cells.start();
    expect(at(PATH)).toEqual([]);
    cells.setCrashes([{ ...first, id: 'again', died_at: '2026-11-22T03:00:00.000Z' }, ...crashes]);
    expect(at(PATH)).toEqual([CELL]);
  });

  it('forgets what was dismissed once its report is gone', () => {
    cells.dismiss(first);
    cells.setCrashes(crashes.slice(1));
    cells.dismiss(crashes[4]);
    expect(kept).toEqual([crashes[4].id]);
  });

  it('has no mark of a forgotten report, and none when switched off', () => {
    const onChanged = vi.fn();
    cells.changed.connect(onChanged);
    cells.setCrashes(crashes.slice(1));
    expect(at(PATH)).toEqual([]);
    cells.setCrashes(crashes);
    cells.setEnabled(false);
    expect(at(PATH)).toEqual([]);
    expect(onChanged).toHaveBeenCalledTimes(3);
  });

  it('waits for what was dismissed before, so that no mark flashes up', () => {
    const fresh = new DeadCells({ load: () => new Promise(() => undefined), save: vi.fn() });
    fresh.setCrashes(crashes);
    expect(fresh.of({ path: PATH, kernelId: null }, new Set()).size).toBe(0);
  });

  it('marks all the same where nothing can be kept', async () => {
    const fail = (): Promise<never> => Promise.reject(new Error('no disk'));
    const fresh = new DeadCells({ load: fail, save: fail });
    fresh.setCrashes(crashes);
    await fresh.start();
    expect(fresh.of({ path: PATH, kernelId: null }, new Set()).size).toBe(1);
    fresh.dismiss(first);
    expect(fresh.of({ path: PATH, kernelId: null }, new Set()).size).toBe(0);
  });
});
