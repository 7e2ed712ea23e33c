/** The Enter key inside our content of JupyterLab dialogs, which take that key as confirmation anywhere. */

/** Let Enter press our buttons in dialogs, and in a field the button beside it, without confirming the dialog. Idempotent. */
export function keepEnterFromDialogs(): void {
  // The dialog listens on its node in the capture phase, so only an ancestor gets the event earlier.
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
    const field = target instanceof HTMLInputElement ? target.parentElement : null;
    (target.closest<HTMLElement>('button, summary, a') ?? field?.querySelector('button'))?.click();
  }
}
