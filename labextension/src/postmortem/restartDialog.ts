/**
 * Writes the cause of a crash into JupyterLab's "Kernel Restarting" dialog, which covers notifications. Uses plain DOM;
 * all data is set as text. Consoles have no such dialog.
 */
import type { Dialog } from '@jupyterlab/apputils';
import type { ISignal } from '@lumino/signaling';

import { keepEnterFromDialogs } from '../parts/dialogKeys';
import { element, write } from '../parts/dom';
import type { CrashEntry } from '../wire';
import { confidenceWord } from '../trans';
import type { Trans } from '../trans';

import type { CrashNotice } from './CrashNotice';

/** When to request the list of crashes, in case the event was lost; after the last time, give up. */
const ASK_AFTER_MS = [3_000, 8_000, 15_000];

/** An open notebook, with the names that the dialog may use. */
export interface IOpenSession {
  readonly path: string;
  readonly name: string;
  readonly kernelId: string;
  readonly status: string;
}

/** The part of a dialog that is used here. */
export type AnyDialog = Pick<Dialog<unknown>, 'disposed' | 'node' | 'resolve'>;

export interface IRestartDialogOptions {
  readonly dialogs: { readonly widgetAdded: ISignal<unknown, AnyDialog> };
  readonly notice: Pick<CrashNotice, 'found' | 'take'>;
  readonly sessions: () => readonly IOpenSession[];
  /** Whether the server extension runs; if not, the dialog is not changed. */
  readonly isGuarding: () => boolean;
  readonly openReport: (id: string) => void;
  /** Reads the list of crashes; `notice` then emits the new ones. */
  readonly readCrashes: () => Promise<unknown>;
  readonly trans: Trans;
}

/** The lines in one dialog. */
interface ICauseLine {
  readonly kernelId: string;
  fill(entry: CrashEntry): void;
  giveUp(): void;
}

/** Write the cause into each such dialog from now on. */
export function watchRestartDialogs(options: IRestartDialogOptions): void {
  const { dialogs, isGuarding, notice, readCrashes, sessions, trans } = options;
  const waiting = new Set<ICauseLine>();

  const ask = async (line: ICauseLine): Promise<void> => {
    let waited = 0;
    for (const when of ASK_AFTER_MS) {
      await new Promise(resolve => setTimeout(resolve, when - waited));
      waited = when;
      if (!waiting.has(line)) {
        return;
      }
      await readCrashes();
    }
    if (waiting.has(line)) {
      line.giveUp();
    }
  };

  const onDialog = (_sender: unknown, dialog: AnyDialog): void => {
    const kernelId = isGuarding() ? deadKernelOf(dialog, sessions()) : null;
    const line = kernelId === null ? null : addCauseLine(dialog, kernelId, options);
    if (line === null) {
      return;
    }
    const known = notice.take(line.kernelId);
    if (known !== null) {
      line.fill(known);
      return;
    }
    waiting.add(line);
    dialog.disposed.connect(() => void waiting.delete(line), options);
    void ask(line);
  };

  const onFound = (_sender: unknown, entry: CrashEntry): void => {
    for (const line of waiting) {
      if (line.kernelId === entry.kernel_id && !entry.kernel_alive) {
        waiting.delete(line);
        notice.take(line.kernelId);
        line.fill(entry);
      }
    }
  };

  keepEnterFromDialogs();
  dialogs.widgetAdded.connect(onDialog, options);
  notice.found.connect(onFound, trans);
}

/**
 * The kernel whose restart the dialog announces, or null for any other dialog. JupyterLab opens the dialog while the
 * kernel's status is `autorestarting`, with the name of the notebook in its text in every language.
 */
function deadKernelOf(dialog: AnyDialog, sessions: readonly IOpenSession[]): string | null {
  const text = dialog.node.querySelector('.jp-Dialog-body')?.textContent ?? '';
  // `old/model.ipynb` contains `model.ipynb`, so the longest matching label counts.
  const [named] = sessions
    .filter(({ status }) => status === 'autorestarting')
    .flatMap(({ kernelId, name, path }) => [path, name].map(label => ({ kernelId, label })))
    .filter(({ label }) => label !== '' && text.includes(label))
    .sort((one, other) => other.label.length - one.label.length);
  return named?.kernelId ?? null;
}

/** Add lines with a placeholder for the cause; null if the dialog has an unexpected structure. */
function addCauseLine(
  dialog: AnyDialog,
  kernelId: string,
  { openReport, trans }: IRestartDialogOptions
): ICauseLine | null {
  const body = dialog.node.querySelector('.jp-Dialog-body');
  const footer = dialog.node.querySelector('.jp-Dialog-footer');
  // Older versions have their buttons in the footer itself.
  const buttons = footer?.querySelector('.jp-Dialog-footerButtons') ?? footer;
  if (body === null || buttons === null) {
    return null;
  }
  const cause = element('b', '', trans.__('TF Guard is looking for the cause…'));
  const place = element('div', 'jp-TfGuard-quiet');
  const box = element('div', 'jp-TfGuard-Cause', cause, place);
  box.setAttribute('role', 'alert');
  body.append(box);
  return {
    kernelId,
    fill: entry => {
      const confidence = confidenceWord(entry.confidence, trans);
      write(cause, trans.__('Cause (%1): %2', confidence, entry.title));
      write(place, entry.where === null ? '' : trans.__('In %1.', entry.where));
      if (typeof entry.unsaved === 'string') {
        box.append(element('div', 'jp-TfGuard-quiet', entry.unsaved));
      }
      box.classList.add('jp-mod-known');
      const showWhy = element(
        'button',
        'jp-TfGuard-ShowWhy jp-Dialog-button jp-mod-reject jp-mod-styled',
        element('div', 'jp-Dialog-buttonLabel', trans.__('Show why'))
      );
      showWhy.type = 'button';
      showWhy.addEventListener('click', () => {
        dialog.resolve(0);
        openReport(entry.id);
      });
      buttons.prepend(showWhy);
    },
    giveUp: () => write(cause, trans.__('TF Guard has no report of this crash yet.'))
  };
}
