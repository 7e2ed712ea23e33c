/**
 * Tells the user of a death once: a notification with the cause and a way to the report. Deaths
 * happen while this page looks on (an event comes) or did before (they lie unread on the server).
 */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { fileName, shortName } from '../units';
import { DEATH_SCHEMA_ID, readDeath } from '../wire';
import type { CrashEntry, Death } from '../wire';
import type { Trans } from '../words';

/** Pauses before asking again for a report that is not there yet. */
const RETRY_MS = [0, 300, 1_000, 2_000, 4_000];

/** The same after the user was told that it cannot be read yet: a server that is busy, or gone for a moment. */
const LATE_RETRY_MS = [5_000, 10_000, 20_000, 40_000, 80_000, 160_000];

/** JupyterLab's dialog follows a death within the restarter's pause, three seconds by default. */
const JUST_NOW_MS = 15_000;

/** More notices than this within `BURST_MS` become one that counts the others. */
const BURST_LIMIT = 5;
const BURST_MS = 60_000;

/** What a user sees of a death outside of panel and report. */
export interface INotifier {
  /** Show it until it is dismissed; returns what takes it away. */
  show(kind: 'error' | 'warning', message: string, reportId: string): () => void;
}

export class DeathNotice {
  constructor(private readonly _options: DeathNotice.IOptions) {}

  /** A death that this page had not heard of before. */
  get found(): ISignal<this, CrashEntry> {
    return this._found;
  }

  /** Take an emission of Jupyter's event stream; those of others are passed over. */
  async onEmission(emission: { readonly schema_id: string }): Promise<void> {
    if (emission.schema_id !== DEATH_SCHEMA_ID) {
      return;
    }
    let death: Death;
    try {
      death = readDeath(emission);
    } catch (error) {
      console.warn('jupyter-tfguard: a death event could not be read.', error);
      return;
    }
    if (!this._told.has(death.id)) {
      this._told.add(death.id);
      await this._tell(death);
    }
  }

  /** Tell of deaths that nobody has looked at: the newest in full, the others as a number. What was read is told no more. */
  onCrashesRead(crashes: readonly CrashEntry[]): void {
    for (const entry of crashes) {
      if (!entry.unread) {
        this.dismiss(entry.id); // in another page, perhaps
      }
    }
    const fresh = crashes.filter(entry => entry.unread && !this._told.has(entry.id));
    const newest = fresh[0];
    if (newest === undefined) {
      return;
    }
    for (const entry of fresh) {
      this.dismiss(entry.id); // that it could not be read yet
      this._told.add(entry.id);
    }
    this._announce(newest, fresh.length - 1);
    for (const entry of fresh.reverse()) {
      this._hear(entry);
    }
  }

  /** The death of this kernel that was heard of just now, if any. Each is handed out once. */
  take(kernelId: string): CrashEntry | null {
    const heard = this._heard.get(kernelId);
    this._heard.delete(kernelId);
    return heard !== undefined && Date.now() - heard.at < JUST_NOW_MS ? heard.entry : null;
  }

  /** The report was opened: its notification has done its work. */
  dismiss(reportId: string): void {
    this._shown.get(reportId)?.();
    this._shown.delete(reportId);
  }

  private async _tell(death: Death): Promise<void> {
    const entry = (await this._entryOf(death)) ?? (await this._lateEntryOf(death));
    if (entry !== null) {
      this._announce(entry, 0);
      this._hear(entry);
      this._options.onDeath(entry);
    }
  }

  /** Says what is known meanwhile. Null also if the list of deaths was read first, and told of it. */
  private async _lateEntryOf(death: Death): Promise<CrashEntry | null> {
    const { trans } = this._options;
    this._notify('error', trans.__('A kernel died. Its report cannot be read yet.'), death.id);
    this._told.delete(death.id);
    const entry = await this._entryOf(death, LATE_RETRY_MS);
    if (entry === null || this._told.has(death.id)) {
      return null;
    }
    this._told.add(death.id);
    return entry;
  }

  private _hear(entry: CrashEntry): void {
    if (!entry.kernel_alive && entry.kernel_id !== null) {
      this._heard.set(entry.kernel_id, { entry, at: Date.now() });
    }
    this._found.emit(entry);
  }

  private async _entryOf(death: Death, pauses = RETRY_MS): Promise<CrashEntry | null> {
    for (const pause of pauses) {
      await new Promise(resolve => setTimeout(resolve, pause));
      try {
        return await this._options.fetch(death.id);
      } catch (error) {
        console.debug('jupyter-tfguard: the report is not there yet.', error);
      }
    }
    return null;
  }

  private _announce(entry: CrashEntry, others: number): void {
    // A kernel that dies again and again has one notification, its last.
    const whose = entry.kernel_id ?? entry.id;
    const old = this._lastOf.get(whose);
    if (old !== undefined) {
      this.dismiss(old);
    }
    this._lastOf.set(whose, entry.id);
    const isOneMore = others === 0 && old === undefined && this._isBurst();
    this._show(entry, isOneMore ? this._joinBurst(entry) : others);
  }

  /** Whether so many kernels died just now that one more notice would only be in the way. */
  private _isBurst(): boolean {
    const now = Date.now();
    this._notices = this._notices.filter(at => now - at < BURST_MS);
    this._notices.push(now);
    if (this._notices.length <= BURST_LIMIT) {
      this._burst = null;
      return false;
    }
    return true;
  }

  /** All deaths of a burst have one notification; returns how many others it is to tell of. */
  private _joinBurst(entry: CrashEntry): number {
    const before = this._burst;
    if (before !== null) {
      this.dismiss(before.id);
    }
    this._burst = { id: entry.id, others: before === null ? 0 : before.others + 1 };
    return this._burst.others;
  }

  private _show(entry: CrashEntry, others: number): void {
    const { trans } = this._options;
    const sentence = sentenceOf(entry, trans);
    const message =
      others === 0
        ? sentence
        : trans._n(
            '%2 And %1 more in the TF Guard panel.',
            '%2 And %1 more in the TF Guard panel.',
            others,
            sentence
          );
    this._notify(entry.kernel_alive ? 'warning' : 'error', message, entry.id);
  }

  private _notify(kind: 'error' | 'warning', message: string, reportId: string): void {
    this.dismiss(reportId); // what was said before the report could be read
    this._shown.set(reportId, this._options.notifier.show(kind, message, reportId));
  }

  private readonly _found = new Signal<this, CrashEntry>(this);
  private readonly _told = new Set<string>();
  /** By kernel id, on this page's clock: the server's may differ. */
  private readonly _heard = new Map<string, { entry: CrashEntry; at: number }>();
  private readonly _lastOf = new Map<string, string>();
  /** When notices were shown, in the last `BURST_MS`. */
  private _notices: number[] = [];
  private _burst: { id: string; others: number } | null = null;
  private readonly _shown = new Map<string, () => void>();
}

export namespace DeathNotice {
  export interface IOptions {
    readonly fetch: (id: string) => Promise<CrashEntry>;
    readonly notifier: INotifier;
    /** A kernel died just now, and this is why. */
    readonly onDeath: (entry: CrashEntry) => void;
    readonly trans: Trans;
  }
}

/** `The kernel of train.ipynb died: Container memory limit.` */
function sentenceOf(entry: CrashEntry, trans: Trans): string {
  const name = shortName(
    entry.notebook_path === null ? (entry.kernel_name ?? '') : fileName(entry.notebook_path)
  );
  if (entry.kernel_alive) {
    return name === ''
      ? trans.__('%1. The kernel lives on.', entry.short_title)
      : trans.__('%1: %2. The kernel lives on.', name, entry.short_title);
  }
  if (entry.cause === 'hang') {
    return name === ''
      ? trans.__('A kernel stood still until it ended.')
      : trans.__('The kernel of %1 stood still until it ended.', name);
  }
  return name === ''
    ? trans.__('A kernel died: %1.', entry.short_title)
    : trans.__('The kernel of %1 died: %2.', name, entry.short_title);
}
