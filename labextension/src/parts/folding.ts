/** Which parts of the panel the user has folded; kept in JupyterLab's state, where it has one. */
import type { IStateDB } from '@jupyterlab/statedb';
import * as React from 'react';

const KEY = 'jupyter-tfguard:folded';

export class Folding {
  constructor(
    private readonly _state: Pick<IStateDB, 'fetch' | 'save'> | null,
    private readonly _changed: () => void
  ) {
    void this._read();
  }

  has(name: string): boolean {
    return this._names.has(name);
  }

  toggle(name: string): void {
    if (!this._names.delete(name)) {
      this._names.add(name);
    }
    this._changed();
    // Where it cannot be kept it holds for this page.
    this._state?.save(KEY, [...this._names]).catch(() => undefined);
  }

  private async _read(): Promise<void> {
    const names: unknown = await this._state?.fetch(KEY).catch(() => undefined);
    if (Array.isArray(names)) {
      names.filter(name => typeof name === 'string').forEach(name => this._names.add(name));
      this._changed();
    }
  }

  private readonly _names = new Set<string>();
}

/** Null where parts cannot be folded, as in a report. */
export const FoldingContext = React.createContext<Pick<Folding, 'has' | 'toggle'> | null>(null);
