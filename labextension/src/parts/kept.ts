/** Sections that the user collapsed and notices that the user dismissed, saved in JupyterLab's state. */
import type { IStateDB } from '@jupyterlab/statedb';
import * as React from 'react';

/** Above this number, the oldest names are dropped. */
const KEPT_COUNT = 200;

/** A set of names that is kept across page loads. */
export class KeptSet {
  constructor(
    private readonly _key: string,
    private readonly _state: Pick<IStateDB, 'fetch' | 'save'> | null,
    private readonly _changed: () => void
  ) {
    void this._read();
  }

  has(name: string): boolean {
    return this._names.has(name);
  }

  /** Add the name, or remove it if it is in the set. */
  toggle(name: string): void {
    if (!this._names.delete(name)) {
      this._names.add(name);
    }
    this._changed();
    const kept = [...this._names].slice(-KEPT_COUNT);
    // If it cannot be saved, it is valid for this page only.
    this._state?.save(`jupyter-tfguard:${this._key}`, kept).catch(() => undefined);
  }

  private async _read(): Promise<void> {
    const names: unknown = await this._state
      ?.fetch(`jupyter-tfguard:${this._key}`)
      .catch(() => undefined);
    if (Array.isArray(names)) {
      names.filter(name => typeof name === 'string').forEach(name => this._names.add(name));
      this._changed();
    }
  }

  private readonly _names = new Set<string>();
}

type Kept = Pick<KeptSet, 'has' | 'toggle'>;

/** Titles of collapsed sections. Null where sections cannot be collapsed, as in a report. */
export const FoldingContext = React.createContext<Kept | null>(null);

/** Dismissed notices. Null where nothing can be dismissed. */
export const DismissedContext = React.createContext<Kept | null>(null);
