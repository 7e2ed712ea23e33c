/**
 * Reports a death once: a notification with the cause and a way to the report, where JupyterLab shows no dialog of its
 * own. Deaths happen while this page is open (an event comes) or did before (they are unread on the server).
 */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { fileName, shortName } from '../units';
import { DEATH_SCHEMA_ID } from '../wire';
import type { CrashEntry, Emission } from '../wire';
import type { Trans } from '../words';

/** Pauses before asking for a report that is not there yet. */
const RETRY_MS = [0, 300, 1_000, 2_000, 4_000];

/** JupyterLab's dialog follows a death within the restarter's pause, three seconds by default. */
const DIALOG_WAIT_MS = 10_000;

/** More notifications at a time hide the page; the list of deaths has all of them. */
const SHOWN_LIMIT = 5;

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

  /** Take an emission of Jupyter's event stream; those of other schemas are ignored. */
  async onEmission({ schema_id, id }: Emission): Promise<void> {
    if (schema_id !== DEATH_SCHEMA_ID || typeof id !== 'string' || this._known.has(id)) {
      return;
    }
    this._known.add(id);
    const entry = await this._entryOf(id);
    if (entry !== null) {
      this._take(entry, 0);
      this._options.onDeath(entry);
    } else if (!this._shown.has(id)) {
      const { trans } = this._options;
      this._show('error', trans.__('A kernel died. Its report cannot be read yet.'), id);
      this._known.delete(id); // the list of deaths will have it
    }
  }

  /** Report deaths that nobody has looked at: the newest in full, the others as a number. */
  onCrashesRead(crashes: readonly CrashEntry[]): void {
    crashes.filter(entry => !entry.unread).forEach(entry => this.dismiss(entry.id));
    const fresh = crashes.filter(entry => entry.unread && !this._known.has(entry.id));
    fresh.forEach(entry => this._known.add(entry.id));
    fresh.forEach((entry, index) => {
      this.dismiss(entry.id); // that it could not be read yet
      if (index > 0) {
        this._found.emit(entry);
      }
    });
    if (fresh.length > 0) {
      this._take(fresh[0], fresh.length - 1);
    }
  }

  /** The death of this kernel that was heard of just now, if any, for a dialog to show: then no notification does. */
  take(kernelId: string): CrashEntry | null {
    const heard = this._heard.get(kernelId);
    this._heard.delete(kernelId);
    if (heard === undefined || Date.now() - heard.at > DIALOG_WAIT_MS) {
      return null;
    }
    this._inDialog.add(heard.entry.id);
    this.dismiss(heard.entry.id);
    return heard.entry;
  }

  /** The report was opened: its notification has done its work. */
  dismiss(reportId: string): void {
    this._shown.get(reportId)?.();
    this._shown.delete(reportId);
  }

  private async _entryOf(id: string): Promise<CrashEntry | null> {
    for (const pause of RETRY_MS) {
      await new Promise(resolve => setTimeout(resolve, pause));
      try {
        return await this._options.fetch(id);
      } catch (error) {
        console.debug('jupyter-tfguard: the report is not there yet.', error);
      }
    }
    return null;
  }

  /** Hand a death to a dialog that waits for it, or to one that comes soon; else notify. */
  private _take(entry: CrashEntry, others: number): void {
    const { kernel_alive: isAlive, kernel_id: kernelId } = entry;
    if (!isAlive && kernelId !== null) {
      this._heard.set(kernelId, { entry, at: Date.now() });
    }
    this._found.emit(entry);
    if (this._inDialog.has(entry.id)) {
      return;
    }
    // One that hung was restarted by the user: no dialog comes.
    const isSudden = !isAlive && entry.cause !== 'hang';
    if (isSudden && kernelId !== null && this._options.hasNotebook(kernelId)) {
      setTimeout(() => {
        if (!this._inDialog.has(entry.id)) {
          this._announce(entry, others);
        }
      }, DIALOG_WAIT_MS);
    } else {
      this._announce(entry, others);
    }
  }

  private _announce(entry: CrashEntry, others: number): void {
    const { trans } = this._options;
    // A kernel that dies again and again has one notification, its last.
    const whose = entry.kernel_id ?? entry.id;
    this.dismiss(this._lastOf.get(whose) ?? '');
    this._lastOf.set(whose, entry.id);
    const sentence = sentenceOf(entry, trans);
    const message =
      others === 0 ? sentence : trans.__('%1 And %2 more in the TF Guard panel.', sentence, others);
    this._show(entry.kernel_alive ? 'warning' : 'error', message, entry.id);
  }

  private _show(kind: 'error' | 'warning', message: string, reportId: string): void {
    this._shown.set(reportId, this._options.notifier.show(kind, message, reportId));
    const [oldest] = this._shown.keys();
    if (this._shown.size > SHOWN_LIMIT) {
      this.dismiss(oldest);
    }
  }

  private readonly _found = new Signal<this, CrashEntry>(this);
  /** Ids of reports that this page has heard of. */
  private readonly _known = new Set<string>();
  /** By kernel id, on this page's clock: the server's may differ. */
  private readonly _heard = new Map<string, { entry: CrashEntry; at: number }>();
  /** Ids of reports that a dialog shows. */
  private readonly _inDialog = new Set<string>();
  private readonly _lastOf = new Map<string, string>();
  private readonly _shown = new Map<string, () => void>();
}

export namespace DeathNotice {
  export interface IOptions {
    readonly fetch: (id: string) => Promise<CrashEntry>;
    /** Whether a notebook of this kernel is open here: JupyterLab shows a dialog for it. */
    readonly hasNotebook: (kernelId: string) => boolean;
    readonly notifier: INotifier;
    /** A kernel died just now, and this is why. */
    readonly onDeath: (entry: CrashEntry) => void;
    readonly trans: Trans;
  }
}

/** `The kernel of train.ipynb died: Container memory limit.` */
function sentenceOf(entry: CrashEntry, trans: Trans): string {
  const { kernel_name, notebook_path, short_title } = entry;
  const name =
    notebook_path === null
      ? (kernel_name ?? trans.__('no name'))
      : shortName(fileName(notebook_path));
  if (entry.kernel_alive) {
    return trans.__('%1: %2. The kernel survived.', name, short_title);
  }
  return entry.cause === 'hang'
    ? trans.__('The kernel of %1 stood still until it ended.', name)
    : trans.__('The kernel of %1 died: %2.', name, short_title);
}
