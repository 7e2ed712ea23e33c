/**
 * Open notebooks and their cells, known by their shape: this needs no package of the notebook's, and
 * works in Notebook 7 alike. Consoles have cells too, but not these.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ISignal } from '@lumino/signaling';

import { sessionWidgets } from './session';
import type { SessionWidget } from './session';

/** What is used of a cell. It leaves the page when it is scrolled away, and its element stays the same. */
export interface ICell {
  readonly node: HTMLElement;
  /** Done when the cell was drawn for the first time. */
  readonly ready: Promise<void>;
  readonly model: {
    readonly id: string;
    /** Of code cells only. */
    readonly outputs?: { toJSON(): readonly { readonly output_type: string }[] };
    readonly stateChanged: ISignal<unknown, { readonly name: string; readonly newValue: unknown }>;
  };
}

export type INotebook = SessionWidget & {
  readonly content: {
    readonly modelContentChanged: ISignal<unknown, unknown>;
    readonly widgets: readonly ICell[];
  };
};

export function openNotebooks(shell: JupyterFrontEnd.IShell): INotebook[] {
  return sessionWidgets(shell).filter(isNotebook);
}

function isNotebook(widget: SessionWidget): widget is INotebook {
  const { content } = widget as { content?: { modelContentChanged?: unknown } };
  return content?.modelContentChanged !== undefined;
}
