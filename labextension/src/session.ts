/**
 * Open notebooks and consoles, and the current one. Widgets are recognized by their properties, so this needs
 * neither the notebook nor the console package, and works in Notebook 7 too.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ISessionContext } from '@jupyterlab/apputils';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';

import type { ITarget } from './currentKernel';

/** A widget with a kernel session: a notebook, a console. */
export type SessionWidget = Widget & { readonly sessionContext: ISessionContext };

function hasSession(widget: Widget | null): widget is SessionWidget {
  const found = (widget as { sessionContext?: { kernelChanged?: unknown } } | null)?.sessionContext;
  return found?.kernelChanged !== undefined;
}

/** Open notebooks and consoles. */
export function sessionWidgets(shell: Pick<JupyterFrontEnd.IShell, 'widgets'>): SessionWidget[] {
  return [...shell.widgets('main')].filter(hasSession);
}

/** The part of a cell that is used here. A cell out of view is removed from the page but keeps its element. */
export interface ICell {
  readonly node: HTMLElement;
  /** Resolves when the cell was drawn for the first time. */
  readonly ready: Promise<void>;
  readonly model: {
    readonly id: string;
    readonly stateChanged: ISignal<unknown, { readonly name: string; readonly newValue: unknown }>;
  };
}

export type INotebook = SessionWidget & {
  readonly content: {
    readonly modelContentChanged: ISignal<unknown, unknown>;
    readonly widgets: readonly ICell[];
  };
};

/** Open notebooks, without consoles. */
export function openNotebooks(shell: Pick<JupyterFrontEnd.IShell, 'widgets'>): INotebook[] {
  return sessionWidgets(shell).filter((widget): widget is INotebook => {
    const { content } = widget as { content?: { modelContentChanged?: unknown } };
    return content?.modelContentChanged !== undefined;
  });
}

/** The current notebook or console; keeps the last one while a text file or a report is in front. */
export class CurrentSession {
  constructor(private readonly _shell: JupyterFrontEnd.IShell) {
    _shell.currentChanged?.connect(this._follow, this);
    this._follow();
  }

  get changed(): ISignal<this, ITarget | null> {
    return this._changed;
  }

  get target(): ITarget | null {
    const session = this._widget?.sessionContext;
    return session === undefined
      ? null
      : { path: session.path, kernelId: session.session?.kernel?.id ?? null };
  }

  /** Check the current widget, for example after a layout was restored. */
  update(): void {
    this._follow();
  }

  private _follow(): void {
    const current = this._shell.currentWidget;
    if (hasSession(current)) {
      this._take(current);
    } else if (this._widget === null) {
      this._take(sessionWidgets(this._shell)[0] ?? null);
    }
  }

  private _take(widget: SessionWidget | null): void {
    if (widget === this._widget) {
      return;
    }
    this._leave();
    this._widget = widget;
    if (widget !== null) {
      widget.disposed.connect(this._onGone, this);
      widget.sessionContext.kernelChanged.connect(this._emit, this);
      widget.sessionContext.propertyChanged.connect(this._emit, this);
    }
    this._emit();
  }

  private _leave(): void {
    const widget = this._widget;
    this._widget = null;
    if (widget !== null) {
      widget.disposed.disconnect(this._onGone, this);
      widget.sessionContext.kernelChanged.disconnect(this._emit, this);
      widget.sessionContext.propertyChanged.disconnect(this._emit, this);
    }
  }

  private _onGone(gone: Widget): void {
    this._leave();
    const others = sessionWidgets(this._shell).filter(widget => widget !== gone);
    const current = this._shell.currentWidget;
    this._take(others.find(widget => widget === current) ?? others[0] ?? null);
    this._emit();
  }

  private _emit(): void {
    this._changed.emit(this.target);
  }

  private readonly _changed = new Signal<this, ITarget | null>(this);
  private _widget: SessionWidget | null = null;
}
