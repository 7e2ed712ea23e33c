/** Enter inside our parts of JupyterLab's dialogs, which take that key as an answer wherever it is pressed. */

/** From now on, Enter on a button of ours in a dialog presses it, and answers no dialog. Once is enough. */
export function keepEnterFromDialogs(): void {
  // A dialog listens on its own node while the key is on its way down: only above is earlier.
  document.addEventListener('keydown', onKeydown, true);
}

function onKeydown(event: KeyboardEvent): void {
  const { key, repeat, target } = event;
  if (key !== 'Enter' || !(target instanceof HTMLElement)) {
    return;
  }
  if (target.closest('.jp-Dialog [class*="jp-TfGuard"]') === null) {
    return;
  }
  event.stopImmediatePropagation();
  event.preventDefault(); // no second click by the browser
  if (!repeat) {
    target.closest<HTMLElement>('button, summary, a')?.click();
  }
}
