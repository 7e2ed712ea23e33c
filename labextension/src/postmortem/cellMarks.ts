/**
 * Marks the cells in which kernels died: a line with the cause below the cell, for each unread crash. Changes only the
 * page: the notebook's model, and so the file, is only read.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';

import type { GuardModel } from '../model';
import { element } from '../parts/dom';
import { openNotebooks } from '../session';
import type { ICell, INotebook } from '../session';
import { dayAndTime, parseStamp } from '../when';
import type { CrashEntry } from '../wire';
import type { Trans } from '../trans';

/** Each key press changes a notebook; limit the updates to this rate. */
const PAUSE_MS = 100;

const MARKED = 'jp-TfGuard-deadCell';

export class CellMarks {
  constructor(private readonly _options: CellMarks.IOptions) {
    const { model, shell } = _options;
    model.crashesRead.connect(this._update, this);
    shell.currentChanged?.connect(this._update, this);
    shell.layoutModified?.connect(this._update, this);
  }

  /** Draw or remove all marks. */
  setEnabled(isEnabled: boolean): void {
    this._isEnabled = isEnabled;
    this._update();
  }

  /** Schedule an update of all open notebooks. */
  private _update(): void {
    this._timer ??= setTimeout(() => {
      this._timer = null;
      openNotebooks(this._options.shell).forEach(notebook => this._draw(notebook));
    }, PAUSE_MS);
  }

  private _draw(notebook: INotebook): void {
    const { content, sessionContext } = notebook;
    if (!this._followed.has(notebook)) {
      this._followed.add(notebook);
      content.modelContentChanged.connect(this._update, this);
      sessionContext.propertyChanged.connect(this._update, this);
    }
    const entries = (this._options.model.crashes ?? []).filter(
      entry => entry.unread && entry.notebook_path === sessionContext.path && !entry.kernel_alive
    );
    for (const cell of content.widgets) {
      const entry = entries.find(found => found.cell?.cell_id === cell.model.id);
      this._mark(cell, this._isEnabled && entry && !this._past.has(entry.id) ? entry : null);
    }
  }

  private _mark(cell: ICell, entry: CrashEntry | null): void {
    const old = this._marks.get(cell);
    if (old?.id === entry?.id) {
      return;
    }
    old?.remove();
    this._marks.delete(cell);
    // A cell that is not drawn yet has no input element.
    const input = cell.node.querySelector(':scope > .jp-Cell-inputWrapper');
    if (entry === null || input === null) {
      void (entry && cell.ready.then(() => this._update()));
      return;
    }
    const line = this._lineOf(entry);
    const { model } = cell;
    const onState = (_: unknown, change: { name: string; newValue: unknown }): void => {
      // The kernel sends the count when the cell has ended.
      if (change.name === 'executionCount' && typeof change.newValue === 'number') {
        this._leave(entry);
      }
    };
    input.after(line);
    cell.node.classList.add(MARKED);
    model.stateChanged.connect(onState, this);
    this._marks.set(cell, {
      id: entry.id,
      remove: () => {
        model.stateChanged.disconnect(onState, this);
        line.remove();
        cell.node.classList.remove(MARKED);
      }
    });
  }

  private _lineOf(entry: CrashEntry): HTMLElement {
    const { markRead, openReport, trans } = this._options;
    const when = dayAndTime(parseStamp(entry.crashed_at), Date.now() / 1000, trans);
    const sign = element('span', 'jp-TfGuard-CellMark-sign', '✕');
    sign.setAttribute('aria-hidden', 'true');
    const why = element('button', 'jp-TfGuard-link', trans.__('Show why'));
    why.addEventListener('click', () => openReport(entry.id));
    const away = element('button', 'jp-TfGuard-link', '×');
    away.title = trans.__('Remove this mark. The report is kept.');
    away.setAttribute('aria-label', away.title);
    away.addEventListener('click', () => {
      this._leave(entry);
      markRead(entry.id);
    });
    const text = trans.__('The kernel died here, %1: %2.', when, entry.short_title);
    const line = element('div', 'jp-TfGuard-CellMark', sign, text, ' ', why, away);
    line.setAttribute('role', 'note');
    // A notebook in command mode handles every key, including Enter.
    line.dataset.lmSuppressShortcuts = 'true';
    return line;
  }

  private _leave(entry: CrashEntry): void {
    this._past.add(entry.id);
    this._update();
  }

  private readonly _followed = new WeakSet<INotebook>();
  private _isEnabled = true;
  private readonly _marks = new WeakMap<ICell, { id: string; remove: () => void }>();
  /** IDs of reports whose cell ran again, or whose mark the user removed. */
  private readonly _past = new Set<string>();
  private _timer: ReturnType<typeof setTimeout> | null = null;
}

export namespace CellMarks {
  export interface IOptions {
    readonly model: Pick<GuardModel, 'crashes' | 'crashesRead'>;
    readonly markRead: (id: string) => void;
    readonly openReport: (id: string) => void;
    readonly shell: Pick<JupyterFrontEnd.IShell, 'currentChanged' | 'widgets'> & {
      /** JupyterLab's own shell only. */
      readonly layoutModified?: JupyterFrontEnd.IShell['currentChanged'];
    };
    readonly trans: Trans;
  }
}
