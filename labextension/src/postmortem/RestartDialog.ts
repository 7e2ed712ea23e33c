/**
 * Finds JupyterLab's "Kernel Restarting" dialog, which covers every notification, and has the cause
 * written into it. Consoles get no such dialog: there the notification is all.
 */
import type { Dialog } from '@jupyterlab/apputils';
import type { ISignal } from '@lumino/signaling';

import { keepEnterFromDialogs } from '../parts/dialogKeys';
import type { CrashEntry } from '../wire';
import type { Trans } from '../words';

import { addCauseLine } from './causeLine';
import type { ICauseLine } from './causeLine';
import type { DeathNotice } from './DeathNotice';

/** When to ask the server, in case its event was lost; after the last, the line says so. */
const ASK_AFTER_MS = [3_000, 8_000, 15_000];

/** An open notebook, as far as the dialog may name it. */
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
  readonly notice: Pick<DeathNotice, 'found' | 'take'>;
  readonly sessions: () => readonly IOpenSession[];
  /** Whether the server part runs; without it nothing is promised. */
  readonly isGuarding: () => boolean;
  readonly openReport: (id: string) => void;
  /** Reads the list of deaths, which makes `notice` find what is new in it. */
  readonly readCrashes: () => Promise<unknown>;
  readonly trans: Trans;
}

/** From now on, write the cause into each such dialog. */
export function watchRestartDialogs(options: IRestartDialogOptions): void {
  const { dialogs, isGuarding, notice, openReport, readCrashes, sessions, trans } = options;
  /** Lines that wait for their cause, each with its kernel's id. */
  const waiting = new Map<ICauseLine, string>();

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
    const kernelId = deadKernelOf(dialog, sessions());
    if (kernelId === null || !isGuarding()) {
      return;
    }
    const line = addCauseLine(dialog.node, {
      trans,
      onShowWhy: entry => {
        dialog.resolve(0);
        openReport(entry.id);
      }
    });
    if (line === null) {
      return;
    }
    const known = notice.take(kernelId);
    if (known !== null) {
      line.fill(known);
      return;
    }
    waiting.set(line, kernelId);
    dialog.disposed.connect(() => void waiting.delete(line), options);
    void ask(line);
  };

  const onFound = (_sender: unknown, entry: CrashEntry): void => {
    const { kernel_alive: isAlive, kernel_id: kernelId } = entry;
    if (isAlive || kernelId === null) {
      return;
    }
    for (const [line, whose] of waiting) {
      if (whose === kernelId) {
        waiting.delete(line);
        notice.take(kernelId);
        line.fill(entry);
      }
    }
  };

  keepEnterFromDialogs();
  dialogs.widgetAdded.connect(onDialog, options);
  notice.found.connect(onFound, options);
}

/**
 * The kernel whose restart the dialog tells of, or null for any other dialog. JupyterLab makes the
 * dialog while the kernel's status is `autorestarting`, and names the notebook in its sentence,
 * whatever the language.
 */
function deadKernelOf(dialog: AnyDialog, sessions: readonly IOpenSession[]): string | null {
  const text = dialog.node.querySelector('.jp-Dialog-body')?.textContent ?? '';
  const restarting = sessions.filter(({ status }) => status === 'autorestarting');
  const named =
    longestIn(text, restarting, ({ path }) => path) ??
    longestIn(text, restarting, ({ name }) => name);
  return named?.kernelId ?? null;
}

/** `old/model.ipynb` holds the path of `model.ipynb` too: the longest is meant. */
function longestIn(
  text: string,
  sessions: readonly IOpenSession[],
  labelOf: (session: IOpenSession) => string
): IOpenSession | undefined {
  return sessions
    .filter(session => labelOf(session) !== '' && text.includes(labelOf(session)))
    .sort((one, other) => labelOf(other).length - labelOf(one).length)[0];
}
