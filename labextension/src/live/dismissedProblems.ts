/** Which of tfguard's own problems the user has seen enough of; kept in JupyterLab's state, where it has one. */
import type { IStateDB } from '@jupyterlab/statedb';
import * as React from 'react';

import type { Problem } from '../wire';

const KEY = 'jupyter-tfguard:dismissed-problems';

export class DismissedProblems {
  constructor(
    private readonly _state: Pick<IStateDB, 'fetch' | 'save'> | null,
    private readonly _changed: () => void
  ) {
    void this._read();
  }

  /** One that was noted anew since is told again; what holds at this moment, and has no time, is always told. */
  has({ what, noted_at }: Problem): boolean {
    return noted_at !== null && noted_at <= (this._untilByWhat.get(what) ?? -Infinity);
  }

  add({ what, noted_at }: Problem): void {
    if (noted_at === null) {
      return;
    }
    this._untilByWhat.set(what, noted_at);
    this._changed();
    // Where it cannot be kept it holds for this page.
    this._state?.save(KEY, [...this._untilByWhat].slice(-KEPT)).catch(() => undefined);
  }

  private async _read(): Promise<void> {
    const kept: unknown = await this._state?.fetch(KEY).catch(() => undefined);
    if (!Array.isArray(kept)) {
      return;
    }
    for (const pair of kept as unknown[]) {
      if (Array.isArray(pair) && typeof pair[0] === 'string' && typeof pair[1] === 'number') {
        this._untilByWhat.set(pair[0], pair[1]);
      }
    }
    this._changed();
  }

  private readonly _untilByWhat = new Map<string, number>();
}

/** The server tells no more at once. */
const KEPT = 50;

/** Null where nothing can be dismissed. */
export const DismissedContext = React.createContext<Pick<DismissedProblems, 'has' | 'add'> | null>(
  null
);
