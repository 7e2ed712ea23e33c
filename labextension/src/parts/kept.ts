/** What the user has folded or dismissed; kept in JupyterLab's state, where it has one. */
import type { IStateDB } from '@jupyterlab/statedb';
import * as React from 'react';

/** The oldest names beyond these are forgotten. */
const KEPT_COUNT = 200;

/** A set of names that outlives the page. */
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
    // Where it cannot be kept it holds for this page.
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

/** Titles of folded sections. Null where sections cannot be folded, as in a report. */
export const FoldingContext = React.createContext<Kept | null>(null);

/** Notices that were dismissed. Null where nothing can be dismissed. */
export const DismissedContext = React.createContext<Kept | null>(null);
