/** The list of deaths as the page knows it: read at the start, after each reconnection, after a death. */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { messageOf } from './api';
import type { GuardApi } from './api';
import type { CrashEntry } from './wire';

export class Deaths {
  constructor(private readonly _api: Deaths.IApi) {}

  /** The list or the trouble with it changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The list was read. */
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

  /** Read the list. A failure leaves the old list, and says why in `trouble`; the result is null then. */
  async refresh(): Promise<readonly CrashEntry[] | null> {
    const turn = ++this._turn;
    try {
      const entries = await this._api.crashes();
      if (turn < this._turn) {
        return this._entries; // it was asked for again, and the later answer counts
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

  /** The report with this id was opened: it is no longer unread, here and on the server. */
  async markRead(id: string): Promise<void> {
    this._entries =
      this._entries?.map(entry => (entry.id === id ? { ...entry, unread: false } : entry)) ?? null;
    this._changed.emit();
    await this._api.markRead(id);
    // A list that was asked for before may still call it unread.
    await this.refresh();
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _listRead = new Signal<this, readonly CrashEntry[]>(this);
  private _entries: readonly CrashEntry[] | null = null;
  private _trouble: string | null = null;
  /** How often the list was asked for. */
  private _turn = 0;
}

export namespace Deaths {
  export type IApi = Pick<GuardApi, 'crashes' | 'markRead'>;
}
