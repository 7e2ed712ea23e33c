/**
 * Keeps the marks of open notebooks as `DeadCells` wants them. They are drawn into the page alone:
 * the notebook's model, and with it file and shared document, is only read.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';

import { openNotebooks } from '../notebooks';
import type { ICell, INotebook } from '../notebooks';
import type { CrashEntry } from '../wire';
import type { Trans } from '../words';

import { addCellMark } from './CellMark';
import type { DeadCells } from './deadCells';

/** Typing changes a notebook with every key; the marks follow at this pace. */
const PAUSE_MS = 100;

/** A mark that stands. */
interface IMark {
  readonly reportId: string;
  readonly remove: () => void;
}

export class CellMarker {
  constructor(private readonly _options: CellMarker.IOptions) {
    _options.deadCells.changed.connect(this.update, this);
  }

  /** Look through the open notebooks, soon. */
  update(): void {
    this._timer ??= setTimeout(() => {
      this._timer = null;
      this._draw();
    }, PAUSE_MS);
  }

  private _draw(): void {
    const { deadCells, shell } = this._options;
    const notebooks = openNotebooks(shell);
    const paths = new Set(notebooks.map(({ sessionContext }) => sessionContext.path));
    for (const notebook of notebooks) {
      this._follow(notebook);
      const { path, session } = notebook.sessionContext;
      const wanted = deadCells.of({ path, kernelId: session?.kernel?.id ?? null }, paths);
      for (const cell of notebook.content.widgets) {
        this._mark(cell, wanted.get(cell.model.id) ?? null);
      }
    }
  }

  private _mark(cell: ICell, entry: CrashEntry | null): void {
    const old = this._marks.get(cell);
    if (old?.reportId === entry?.id) {
      return;
    }
    old?.remove();
    this._marks.delete(cell);
    if (entry === null) {
      return;
    }
    const { deadCells, openReport, trans } = this._options;
    const removeLine = addCellMark(cell.node, entry, {
      onDismiss: () => deadCells.dismiss(entry),
      onShowWhy: () => openReport(entry.id),
      trans
    });
    if (removeLine === null) {
      if (!this._awaited.has(cell)) {
        this._awaited.add(cell);
        void cell.ready.then(() => this.update());
      }
      return;
    }
    const { model } = cell;
    const onState = (_: unknown, change: { name: string; newValue: unknown }): void => {
      // The count comes with the kernel's answer, after all outputs.
      if (change.name === 'executionCount' && typeof change.newValue === 'number') {
        if (!model.outputs?.toJSON().some(output => output.output_type === 'error')) {
          deadCells.dismiss(entry);
        }
      }
    };
    model.stateChanged.connect(onState, this);
    this._marks.set(cell, {
      reportId: entry.id,
      remove: () => {
        model.stateChanged.disconnect(onState, this);
        removeLine();
      }
    });
  }

  /** From now on, look again when this notebook gets other cells, another kernel or another name. */
  private _follow(notebook: INotebook): void {
    if (this._followed.has(notebook)) {
      return;
    }
    this._followed.add(notebook);
    const { content, sessionContext } = notebook;
    content.modelContentChanged.connect(this.update, this);
    sessionContext.kernelChanged.connect(this.update, this);
    sessionContext.propertyChanged.connect(this.update, this);
  }

  private readonly _awaited = new WeakSet<ICell>();
  private readonly _marks = new WeakMap<ICell, IMark>();
  private readonly _followed = new WeakSet<INotebook>();
  private _timer: ReturnType<typeof setTimeout> | null = null;
}

export namespace CellMarker {
  export interface IOptions {
    readonly deadCells: DeadCells;
    readonly openReport: (id: string) => void;
    readonly shell: JupyterFrontEnd.IShell;
    readonly trans: Trans;
  }
}
