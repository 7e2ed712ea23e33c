/** Our lines inside JupyterLab's own "Kernel Restarting" dialog: plain DOM, all data as text. */
import type { CrashEntry } from '../wire';
import { confidenceSentence } from '../words';
import type { Trans } from '../words';

/** The lines in one dialog. */
export interface ICauseLine {
  /** The cause is known: say it, and offer the report. */
  fill(entry: CrashEntry): void;
  /** Nobody knows it so far; it may still be filled in. */
  giveUp(): void;
}

/**
 * Add a line to the dialog that says that the cause is being looked for.
 *
 * @param dialog - the dialog's element; its body and its buttons are looked up by JupyterLab's classes.
 * @returns the line, or null if the dialog is not built as expected.
 */
export function addCauseLine(
  dialog: HTMLElement,
  options: { readonly onShowWhy: (entry: CrashEntry) => void; readonly trans: Trans }
): ICauseLine | null {
  const { onShowWhy, trans } = options;
  const body = dialog.querySelector('.jp-Dialog-body');
  const footer = dialog.querySelector('.jp-Dialog-footer');
  // Older versions have their buttons in the footer itself.
  const buttons = footer?.querySelector('.jp-Dialog-footerButtons') ?? footer;
  if (body === null || buttons === null) {
    return null;
  }
  const box = element('div', 'jp-TfGuard-Cause');
  box.setAttribute('role', 'alert');
  const cause = element('b', 'jp-TfGuard-Cause-title');
  const place = element('div', 'jp-TfGuard-quiet');
  cause.textContent = trans.__('TF Guard is finding out why…');
  box.append(cause, place);
  body.append(box);
  return {
    fill: entry => {
      cause.textContent = trans.__('Cause: %1', entry.title);
      place.textContent = [
        ...(entry.where === null ? [] : [trans.__('In %1.', entry.where)]),
        confidenceSentence(entry.confidence, trans)
      ].join(' ');
      box.classList.add('jp-mod-known');
      dialog.querySelector('.jp-TfGuard-ShowWhy')?.remove();
      buttons.prepend(showWhyButton(() => onShowWhy(entry), trans));
    },
    giveUp: () => {
      cause.textContent = trans.__('TF Guard has no report of this death yet.');
    }
  };
}

function showWhyButton(onClick: () => void, trans: Trans): HTMLElement {
  const button = element('button', 'jp-TfGuard-ShowWhy');
  button.classList.add('jp-Dialog-button', 'jp-mod-reject', 'jp-mod-styled');
  button.setAttribute('type', 'button');
  const label = element('div', 'jp-Dialog-buttonLabel');
  label.textContent = trans.__('Show why');
  button.append(label);
  button.addEventListener('click', onClick);
  return button;
}

function element(tag: string, className: string): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  return made;
}
