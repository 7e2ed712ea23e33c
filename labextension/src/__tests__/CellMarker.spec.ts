import { Signal } from '@lumino/signaling';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { CellMarker } from '../postmortem/CellMarker';
import { DeadCells } from '../postmortem/deadCells';
import { readCrashes } from '../wire';
import type { CrashEntry } from '../wire';

import { sample, trans } from './samples';

const CELL = 'b2f0c1d4-55aa-4c8e-9f37-0d6a1e2b3c4d';

class FakeCell {
  readonly node = document.createElement('div');
  readonly ready: Promise<void>;
  draw: () => void = () => undefined;
  outputs: { output_type: string }[] = [];
  readonly model;

  constructor(id: string, isDrawn = true) {
    this.model = {
      id,
      outputs: { toJSON: () => this.outputs },
      stateChanged: new Signal<object, { name: string; newValue: unknown }>({})
    };
    this.ready = new Promise(resolve => {
      this.draw = () => {
        this.node.innerHTML =
          '<div class="jp-Cell-inputWrapper"></div><div class="jp-Cell-outputWrapper"></div>';
        resolve();
      };
    });
    if (isDrawn) {
      this.draw();
    }
  }

  get text(): string | null {
    return this.node.querySelector('.jp-TfGuard-CellMark')?.textContent ?? null;
  }

  runs(count: number | null, outputs: string[] = []): void {
    this.outputs = outputs.map(output_type => ({ output_type }));
    this.model.stateChanged.emit({ name: 'executionCount', newValue: count });
  }
}

function notebook(path: string, widgets: FakeCell[]): object {
  return {
    content: { modelContentChanged: new Signal<object, void>({}), widgets },
    sessionContext: {
      path,
      session: { kernel: { id: 'k' } },
      kernelChanged: new Signal<object, void>({}),
      propertyChanged: new Signal<object, void>({})
    }
  };
}

describe('CellMarker', () => {
  let crashes: CrashEntry[];
  let dead: DeadCells;
  let cell: FakeCell;
  let other: FakeCell;
  let open: object[];
  const openReport = vi.fn();

  async function settle(): Promise<void> {
    await vi.advanceTimersByTimeAsync(200);
  }

  beforeEach(async () => {
    vi.useFakeTimers();
    crashes = readCrashes(sample('crashes'));
    dead = new DeadCells({ load: async () => [], save: async () => undefined });
    cell = new FakeCell(CELL);
    other = new FakeCell('other');
    open = [notebook('course/train.ipynb', [other, cell]), { sessionContext: {} }];
    const shell = { widgets: () => open } as never;
    new CellMarker({ deadCells: dead, openReport, shell, trans }).update();
    dead.setCrashes(crashes);
    await dead.start();
    await settle();
  });

  it('draws the cause below the source of the cell, once', async () => {
    dead.setCrashes(crashes);
    await settle();
    expect(cell.node.querySelectorAll('.jp-TfGuard-CellMark')).toHaveLength(1);
    expect(cell.text).toMatch(/^✕The kernel died here.*: Container memory limit\.Show why×$/);
    expect(cell.node.children[1]?.className).toBe('jp-TfGuard-CellMark');
    expect(cell.node.classList.contains('jp-TfGuard-deadCell')).toBe(true);
    expect(other.text).toBeNull();
  });

  it('opens the report, and goes when it is taken away', async () => {
    const [why, away] = cell.node.querySelectorAll('button');
    why?.click();
    expect(openReport).toHaveBeenCalledWith(crashes[0]?.id);
    expect(away?.getAttribute('aria-label')).toContain('Take this mark away');
    away?.click();
    await settle();
    expect(cell.text).toBeNull();
    expect(cell.node.classList.contains('jp-TfGuard-deadCell')).toBe(false);
  });

  it('stays while the cell runs, and when it ends in an error', async () => {
    cell.runs(null);
    cell.runs(7, ['stream', 'error']);
    await settle();
    expect(cell.text).not.toBeNull();
  });

  it('goes when the cell ran to its end', async () => {
    cell.runs(null);
    cell.runs(7, ['stream']);
    await settle();
    expect(cell.text).toBeNull();
  });

  it('follows a cell that is drawn later, and one whose widget is made anew', async () => {
    const late = new FakeCell(CELL, false);
    (open[0] as ReturnType<typeof Object>).content.widgets = [late];
    (open[0] as ReturnType<typeof Object>).content.modelContentChanged.emit();
    await settle();
    expect(late.text).toBeNull();
    late.draw();
    await settle();
    expect(late.text).toContain('The kernel died here');
  });

  it('marks a notebook anew that was renamed to the name of the death', async () => {
    const { sessionContext } = open[0] as ReturnType<typeof Object>;
    sessionContext.path = 'elsewhere.ipynb';
    sessionContext.propertyChanged.emit();
    await settle();
    expect(cell.text).toBeNull();
    sessionContext.path = 'course/train.ipynb';
    sessionContext.propertyChanged.emit();
    await settle();
    expect(cell.text).not.toBeNull();
  });

  it('keeps hostile titles text', async () => {
    const evil = '<img src=x onerror="alert(1)">';
    dead.setCrashes([{ ...crashes[0], id: 'evil', short_title: evil }]);
    await settle();
    expect(cell.node.querySelector('img')).toBeNull();
    expect(cell.text).toContain(evil);
  });
});
