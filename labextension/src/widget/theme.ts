/** Colors of the widget: JupyterLab and Notebook 7 have their own, other pages get ours. */

import { SYSTEM_IS_DARK } from '../chart/theme';

/** Data attribute of pages of JupyterLab, Notebook 7 and nbconvert. */
const JUPYTER = 'jpThemeLight';

/**
 * Mark the panel on a page that is not Jupyter's: the style sheet then sets the colors, VS Code's if present. Dark if
 * Colab's page is dark, else as set in the system.
 *
 * CSS variables are no test: ipywidgets defines JupyterLab's light ones everywhere.
 */
export function followHost(root: HTMLElement): void {
  root.classList.toggle('jp-mod-foreign', !(JUPYTER in document.body.dataset));
  const theme = document.documentElement.getAttribute('theme');
  const isDark = theme === null ? matchMedia(SYSTEM_IS_DARK).matches : theme === 'dark';
  root.classList.toggle('jp-mod-dark', isDark);
}
