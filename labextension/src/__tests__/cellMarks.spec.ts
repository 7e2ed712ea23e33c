import { Signal } from '@lumino/signaling';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { CellMarks } from '../postmortem/cellMarks';
import type { CrashEntry } from '../wire';

import { crashEntries, trans } from './samples';

const CELL = 'b2f0c1d4-55aa-4c8e-9f37-0d6a1e2b3c4d';

/** A cell of the page; its input is there once it is drawn. */
class FakeCell {
  readonly node = document.createElement('div');
  readonly model;
  readonly ready: Promise<void>;
  draw!: () => void;

  constructor(id: string) {
    this.model = { id, stateChanged: new Signal<object, { name: string; newValue: unknown }>({}) };
    this.ready = new Promise(resolve => {
      this.draw = () => {
        this.node.innerHTML = '<div class="jp-Cell-inputWrapper"></div><div class="output"></div>';
        resolve();
      };
    });
  }

  get mark(): HTMLElement | null {
    return this.node.querySelector('.jp-TfGuard-CellMark');
  }
}

describe('CellMarks', () => {
  let crashes: CrashEntry[];
  let crashesRead: Signal<object, void>;
  let cell: FakeCell;
  let other: FakeCell;
  let marks: CellMarks;
  const markRead = vi.fn();
  const openReport = vi.fn();

  beforeEach(async () => {
    vi.useFakeTimers();
    markRead.mockClear();
    crashes = crashEntries();
    crashesRead = new Signal({});
    cell = new FakeCell(CELL);
    other = new FakeCell('other');
    cell.draw();
    other.draw();
    const notebook = {
      content: { modelContentChanged: new Signal({}), widgets: [other, cell] },
      sessionContext: {
        kernelChanged: new Signal({}),
        path: 'course/train.ipynb',
        propertyChanged: new Signal({})
      }
    };
    marks = new CellMarks({
      model: {
        get crashes() {
          return crashes;
        },
        crashesRead: crashesRead as never
      },
      markRead,
      openReport,
      shell: { currentChanged: new Signal({}), widgets: () => [notebook].values() } as never,
      trans
    });
    await update();
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  async function update(): Promise<void> {
    crashesRead.emit();
    await vi.advanceTimersByTimeAsync(200);
  }

  it('marks the cell that ran, with the cause and a way to the report', () => {
    expect(cell.mark?.textContent).toContain('Container memory limit.');
    expect(cell.mark?.previousElementSibling?.className).toBe('jp-Cell-inputWrapper');
    expect(other.mark).toBeNull();
    cell.mark?.querySelector('button')?.click();
    expect(openReport).toHaveBeenCalledWith(crashes[0].id);
  });

  it('draws hostile texts as texts', async () => {
    crashes = [{ ...crashes[0], id: 'next', short_title: '<img src=x onerror=alert(1)>' }];
    await update();
    expect(cell.mark?.textContent).toContain('<img');
    expect(cell.node.querySelector('img')).toBeNull();
  });

  it('is removed once the report was read', async () => {
    crashes = crashes.map(entry => ({ ...entry, unread: false }));
    await update();
    expect(cell.mark).toBeNull();
    expect(cell.node.className).toBe('');
  });

  it('goes when the user removes it: the report counts as read', async () => {
    cell.mark?.querySelector<HTMLElement>('[aria-label]')?.click();
    await update();
    expect(cell.mark).toBeNull();
    expect(markRead).toHaveBeenCalledWith(crashes[0].id);
  });

  it('goes when the cell ran to its end, and comes for the next death', async () => {
    cell.model.stateChanged.emit({ name: 'executionCount', newValue: null });
    await update();
    expect(cell.mark).not.toBeNull();
    cell.model.stateChanged.emit({ name: 'executionCount', newValue: 2 });
    await update();
    expect(cell.mark).toBeNull();
    crashes = [{ ...crashes[0], id: 'next' }, ...crashes];
    await update();
    expect(cell.mark).not.toBeNull();
  });

  it('waits for a cell that is out of view, and is drawn once', async () => {
    crashes = [{ ...crashes[0], id: 'next' }];
    cell.node.replaceChildren();
    await update();
    expect(cell.mark).toBeNull();
    cell.draw();
    await update();
    await update();
    expect(cell.node.querySelectorAll('.jp-TfGuard-CellMark')).toHaveLength(1);
  });

  it('can be switched off', async () => {
    marks.setEnabled(false);
    await update();
    expect(cell.mark).toBeNull();
  });
});
