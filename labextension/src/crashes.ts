/** The list of crashes. Read at the start, after each reconnection and after a crash. */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { messageOf } from './api';
import type { GuardApi } from './api';
import type { CrashEntry } from './wire';

export class Crashes {
  constructor(private readonly _api: Crashes.IApi) {}

  /** The list or `trouble` changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The list was read. */
  get listRead(): ISignal<this, readonly CrashEntry[]> {
    return this._listRead;
  }

  /** Newest first; null until read. */
  get entries(): readonly CrashEntry[] | null {
    return this._entries;
  }

  /** Why the last attempt to read the list failed, or null. */
  get trouble(): string | null {
    return this._trouble;
  }

  /** Read the list. On failure, keep the old list, set `trouble` and return null. */
  async refresh(): Promise<readonly CrashEntry[] | null> {
    const turn = ++this._turn;
    try {
      const entries = await this._api.crashes();
      if (turn < this._turn) {
        return this._entries; // a later request is in progress; its response counts
      }
      this._entries = entries;
      this._trouble = null;
    } catch (error) {
      this._trouble = messageOf(error);
      this._changed.emit();
      return null;
    }
    this._changed.emit();
    this._listRead.emit(this._entries);
    return this._entries;
  }

  /** Mark the report as read, on this page and on the server. */
  async markRead(id: string): Promise<void> {
    this._entries =
      this._entries?.map(entry => (entry.id === id ? { ...entry, unread: false } : entry)) ?? null;
    this._changed.emit();
    await this._api.markRead(id);
    // A response to an earlier request may still list it as unread.
    await this.refresh();
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _listRead = new Signal<this, readonly CrashEntry[]>(this);
  private _entries: readonly CrashEntry[] | null = null;
  private _trouble: string | null = null;
  /** Number of requests so far. */
  private _turn = 0;
}

export namespace Crashes {
  export type IApi = Pick<GuardApi, 'crashes' | 'markRead'>;
}
