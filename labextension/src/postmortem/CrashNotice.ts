/**
 * Shows one notification per crash, with the cause and a link to the report, unless JupyterLab shows a dialog. A crash
 * becomes known by an event while this page is open, or later from the list of unread reports.
 */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { fileName, shortName } from '../units';
import { CRASH_SCHEMA_ID } from '../wire';
import type { CrashEntry, Emission } from '../wire';
import type { Trans } from '../trans';

/** Delays between requests for a report that is not ready yet. */
const RETRY_MS = [0, 300, 1_000, 2_000, 4_000];

/** JupyterLab's dialog appears within the delay of the restarter, three seconds by default. */
const DIALOG_WAIT_MS = 10_000;

/** More notifications would hide the page; the list in the panel has all crashes. */
const SHOWN_LIMIT = 5;

/** Shows notifications. */
export interface INotifier {
  /** Show a notification until it is dismissed. Returns a function that dismisses it. */
  show(kind: 'error' | 'warning', message: string, reportId: string): () => void;
}

export class CrashNotice {
  constructor(private readonly _options: CrashNotice.IOptions) {}

  /** A crash that is new to this page. */
  get found(): ISignal<this, CrashEntry> {
    return this._found;
  }

  /** Take an event of Jupyter's event stream; events of other schemas are ignored. */
  async onEmission({ schema_id, id }: Emission): Promise<void> {
    if (schema_id !== CRASH_SCHEMA_ID || typeof id !== 'string' || this._known.has(id)) {
      return;
    }
    this._known.add(id);
    const entry = await this._entryOf(id);
    if (entry !== null) {
      this._take(entry, 0);
      this._options.onCrash(entry);
    } else if (!this._shown.has(id)) {
      const { trans } = this._options;
      this._show('error', trans.__('A kernel died. Its report is not ready yet.'), id);
      this._known.delete(id); // the list of crashes will have it
    }
  }

  /** Report unread crashes: the newest with its cause, the others as a number. */
  onCrashesRead(crashes: readonly CrashEntry[]): void {
    crashes.filter(entry => !entry.unread).forEach(entry => this.dismiss(entry.id));
    const fresh = crashes.filter(entry => entry.unread && !this._known.has(entry.id));
    fresh.forEach(entry => this._known.add(entry.id));
    fresh.forEach((entry, index) => {
      this.dismiss(entry.id); // the notification that it is not ready yet
      if (index > 0) {
        this._found.emit(entry);
      }
    });
    if (fresh.length > 0) {
      this._take(fresh[0], fresh.length - 1);
    }
  }

  /** The recent crash of this kernel, if any, for a dialog that shows it; no notification is shown then. */
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

  /** Remove the notification of a report that was opened. */
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
        console.debug('jupyter-tfguard: the report is not ready yet.', error);
      }
    }
    return null;
  }

  /** Pass a crash to a dialog that waits for it or appears soon; else notify. */
  private _take(entry: CrashEntry, others: number): void {
    const { kernel_alive: isAlive, kernel_id: kernelId } = entry;
    if (!isAlive && kernelId !== null) {
      this._heard.set(kernelId, { entry, at: Date.now() });
    }
    this._found.emit(entry);
    if (this._inDialog.has(entry.id)) {
      return;
    }
    // The user restarted a kernel that hung, so no dialog appears.
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
    // A kernel that crashes repeatedly has one notification, the latest.
    const whose = entry.kernel_id ?? entry.id;
    this.dismiss(this._lastOf.get(whose) ?? '');
    this._lastOf.set(whose, entry.id);
    const sentence = sentenceOf(entry, trans);
    const message =
      others === 0 ? sentence : trans.__('%1 The TF Guard panel shows %2 more.', sentence, others);
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
  /** IDs of reports that this page knows. */
  private readonly _known = new Set<string>();
  /** By kernel ID; times are of this page's clock, the server's may differ. */
  private readonly _heard = new Map<string, { entry: CrashEntry; at: number }>();
  /** IDs of reports that a dialog shows. */
  private readonly _inDialog = new Set<string>();
  private readonly _lastOf = new Map<string, string>();
  private readonly _shown = new Map<string, () => void>();
}

export namespace CrashNotice {
  export interface IOptions {
    readonly fetch: (id: string) => Promise<CrashEntry>;
    /** Whether a notebook of this kernel is open here: JupyterLab shows a dialog for it. */
    readonly hasNotebook: (kernelId: string) => boolean;
    readonly notifier: INotifier;
    /** Called when a kernel died while this page is open. */
    readonly onCrash: (entry: CrashEntry) => void;
    readonly trans: Trans;
  }
}

/** `The kernel of train.ipynb died: Container memory limit.` */
function sentenceOf(entry: CrashEntry, trans: Trans): string {
  const { kernel_name, notebook_path, short_title } = entry;
  const name = notebook_path === null ? kernel_name : shortName(fileName(notebook_path));
  if (entry.kernel_alive) {
    const title = name ?? trans.__('A kernel');
    return trans.__('%1: %2. The kernel is still running.', title, short_title);
  }
  const kernel =
    name === null
      ? trans.__('A kernel')
      : notebook_path === null
        ? trans.__('The kernel %1', name)
        : trans.__('The kernel of %1', name);
  return entry.cause === 'hang'
    ? trans.__('%1 hung until it was stopped.', kernel)
    : trans.__('%1 died: %2.', kernel, short_title);
}
