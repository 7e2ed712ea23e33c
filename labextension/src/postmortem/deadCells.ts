/**
 * Which cells of a notebook carry a mark, because a kernel died in them. From the list of deaths
 * alone: nothing is written into the notebook.
 */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { CrashEntry } from '../wire';

/** A notebook that is open here. */
export interface IPlace {
  readonly path: string;
  readonly kernelId: string | null;
}

/** Where the marks that were taken away are kept, by id of the report. */
export interface IDismissedStore {
  load(): Promise<readonly string[]>;
  save(ids: readonly string[]): Promise<void>;
}

export class DeadCells {
  constructor(private readonly _store: IDismissedStore) {}

  /** The cells to be marked are others now. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Read what was taken away before; until then no cell carries a mark. */
  async start(): Promise<void> {
    try {
      this._dismissed = new Set(await this._store.load());
    } catch (error) {
      console.debug('jupyter-tfguard: dismissed marks cannot be read.', error);
      this._dismissed = new Set();
    }
    this._changed.emit();
  }

  /** The list of deaths, newest first. */
  setCrashes(crashes: readonly CrashEntry[]): void {
    this._crashes = crashes.filter(({ cell, kernel_alive }) => cell?.cell_id && !kernel_alive);
    this._changed.emit();
  }

  /** Whether there are marks at all. */
  setEnabled(isEnabled: boolean): void {
    this._isEnabled = isEnabled;
    this._changed.emit();
  }

  /**
   * The newest death of each cell, by cell id.
   *
   * A notebook is known by its path. One that was renamed is known by its kernel, which restarts
   * under its old id, unless another notebook here has the old path.
   *
   * @param openPaths - of all notebooks that are open here.
   */
  of(place: IPlace, openPaths: ReadonlySet<string>): Map<string, CrashEntry> {
    const found = new Map<string, CrashEntry>();
    const dismissed = this._dismissed;
    if (dismissed === null || !this._isEnabled) {
      return found;
    }
    for (const entry of this._crashes) {
      const id = cellIdOf(entry);
      if (!found.has(id) && isOf(entry, place, openPaths)) {
        found.set(id, entry);
      }
    }
    for (const [id, entry] of found) {
      if (dismissed.has(entry.id)) {
        found.delete(id);
      }
    }
    return found;
  }

  /** The user has seen it, or the cell ran well since: this death and older ones of its cell are past. */
  dismiss(entry: CrashEntry): void {
    const dismissed = this._dismissed ?? new Set();
    const [id, { died_at, kernel_id, notebook_path }] = [cellIdOf(entry), entry];
    const same = this._crashes.filter(
      other =>
        cellIdOf(other) === id &&
        other.died_at <= died_at &&
        (other.notebook_path === notebook_path || other.kernel_id === kernel_id)
    );
    // Reports that are gone need no memory.
    const known = this._crashes.filter(other => dismissed.has(other.id));
    this._dismissed = new Set([...known, ...same, entry].map(other => other.id));
    this._store.save([...this._dismissed]).catch((error: unknown) => {
      console.debug('jupyter-tfguard: dismissed marks cannot be kept.', error);
    });
    this._changed.emit();
  }

  private readonly _changed = new Signal<this, void>(this);
  private _crashes: readonly CrashEntry[] = [];
  private _dismissed: ReadonlySet<string> | null = null;
  private _isEnabled = true;
}

function cellIdOf(entry: CrashEntry): string {
  return entry.cell?.cell_id ?? '';
}

function isOf(entry: CrashEntry, place: IPlace, openPaths: ReadonlySet<string>): boolean {
  const { kernel_id: kernelId, notebook_path: path } = entry;
  return (
    path === place.path ||
    (kernelId !== null && kernelId === place.kernelId && (path === null || !openPaths.has(path)))
  );
}
