/** The line on a cell in which a kernel died: plain DOM, all data as text. */
import { clock, dayAndTime, fullTime, parseStamp } from '../when';
import type { CrashEntry } from '../wire';
import type { Trans } from '../words';

const MARKED = 'jp-TfGuard-deadCell';

/**
 * Put the line below the source of a cell.
 *
 * @param cell - the cell's element; the line stands behind its input, found by JupyterLab's class.
 * @returns what takes it away; null while the cell is not drawn.
 */
export function addCellMark(
  cell: HTMLElement,
  entry: CrashEntry,
  options: addCellMark.IOptions
): (() => void) | null {
  const input = cell.querySelector(':scope > .jp-Cell-inputWrapper');
  if (input === null) {
    return null;
  }
  const { onDismiss, onShowWhy, trans } = options;
  const line = element('div', 'jp-TfGuard-CellMark', '');
  line.setAttribute('role', 'note');
  // A notebook in command mode takes every key for itself, Enter too.
  line.dataset.lmSuppressShortcuts = 'true';
  const sign = element('span', 'jp-TfGuard-CellMark-sign', '✕');
  sign.setAttribute('aria-hidden', 'true');
  const text = element('span', '', sentenceOf(entry, trans));
  text.title = fullTime(entry.died_at);
  const why = button(trans.__('Show why'), onShowWhy);
  const away = button('×', onDismiss);
  away.title = trans.__('Take this mark away; the report stays');
  away.setAttribute('aria-label', away.title);
  line.append(sign, text, why, away);
  input.after(line);
  cell.classList.add(MARKED);
  return () => {
    line.remove();
    cell.classList.remove(MARKED);
  };
}

export namespace addCellMark {
  export interface IOptions {
    readonly onDismiss: () => void;
    readonly onShowWhy: () => void;
    readonly trans: Trans;
  }
}

function element(tag: string, className: string, text: string): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

function button(label: string, onClick: () => void): HTMLElement {
  const made = element('button', 'jp-TfGuard-link', label);
  made.addEventListener('click', onClick);
  return made;
}

/** `The kernel died here at 02:14: Container memory limit.` */
function sentenceOf(entry: CrashEntry, trans: Trans): string {
  const { died_at: stamp, short_title: title } = entry;
  const died = parseStamp(stamp);
  const isToday =
    died !== null && new Date(died * 1000).toDateString() === new Date().toDateString();
  return isToday
    ? trans.__('The kernel died here at %1: %2.', clock(died, true), title)
    : trans.__('The kernel died here, %1: %2.', dayAndTime(stamp, Date.now() / 1000, trans), title);
}
