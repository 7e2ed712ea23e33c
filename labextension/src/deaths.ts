/** The list of deaths as the page knows it: read at the start, after each reconnection, after a death. */
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { GuardApi } from './api';
import type { CrashEntry } from './wire';

/** A death that Jupyter's event stream tells of is read by then. */
const AFTER_HINT_MS = 3_000;

export class Deaths implements IDisposable {
  constructor(private readonly _api: Deaths.IApi) {}

  /** The list or the trouble with it changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The list was read anew. */
  get listRead(): ISignal<this, readonly CrashEntry[]> {
    return this._listRead;
  }

  /** Newest first; null until they were read. */
  get entries(): readonly CrashEntry[] | null {
    return this._entries;
  }

  /** Why the list could not be read last time, or null. */
  get trouble(): string | null {
    return this._trouble;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Read the list anew. A failure leaves the old list, with a word in `trouble`; then null comes back. */
  async refresh(): Promise<readonly CrashEntry[] | null> {
    const turn = ++this._turn;
    let entries: readonly CrashEntry[];
    try {
      entries = await this._api.crashes();
    } catch (error) {
      this._trouble = error instanceof Error ? error.message : String(error);
      this._changed.emit();
      return null;
    }
    if (this._entries !== null && turn < this._shownTurn) {
      return this._entries; // a later one was quicker
    }
    this._shownTurn = turn;
    this._entries = entries.map(entry =>
      turn <= (this._readUntil.get(entry.id) ?? 0) ? { ...entry, unread: false } : entry
    );
    this._trouble = null;
    this._changed.emit();
    this._listRead.emit(this._entries);
    return this._entries;
  }

  /** The stream says that something died, and no more: read the list when it is sure to stand there. */
  refreshSoon(): void {
    this._soon ??= setTimeout(() => {
      this._soon = null;
      void this.refresh();
    }, AFTER_HINT_MS);
  }

  /** The report with this id was opened: it is no longer news, here and on the server. */
  async markRead(id: string): Promise<void> {
    this._entries =
      this._entries?.map(entry => (entry.id === id ? { ...entry, unread: false } : entry)) ?? null;
    this._readUntil.set(id, Infinity);
    this._changed.emit();
    try {
      await this._api.markRead(id);
    } finally {
      this._readUntil.set(id, this._turn);
    }
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    if (this._soon !== null) {
      clearTimeout(this._soon);
    }
    Signal.clearData(this);
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _listRead = new Signal<this, readonly CrashEntry[]>(this);
  private _entries: readonly CrashEntry[] | null = null;
  private _isDisposed = false;
  /** By report that was read here: the last reading of the list that may not know it yet. */
  private readonly _readUntil = new Map<string, number>();
  private _shownTurn = 0;
  private _soon: ReturnType<typeof setTimeout> | null = null;
  private _trouble: string | null = null;
  /** How often the list was asked for. */
  private _turn = 0;
}

export namespace Deaths {
  export type IApi = Pick<GuardApi, 'crashes' | 'markRead'>;
}
