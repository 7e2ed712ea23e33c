/** Whose page this is: JupyterLab and Notebook 7 bring colours of their own, all others get ours. */

import { SYSTEM_IS_DARK } from '../chart/theme';

/** What marks a page of JupyterLab or Notebook 7, or one made by nbconvert. */
const JUPYTER = 'jpThemeLight';

/**
 * Mark the panel of a page that is not Jupyter's: its style sheet then gives the colours, VS Code's where
 * there are any. Dark where Colab's page says so, else as the system is.
 *
 * That a variable exists tells nothing: ipywidgets brings JupyterLab's light ones everywhere.
 */
export function followHost(root: HTMLElement): void {
  root.classList.toggle('jp-mod-foreign', !(JUPYTER in document.body.dataset));
  const told = document.documentElement.getAttribute('theme');
  const isDark = told === null ? matchMedia(SYSTEM_IS_DARK).matches : told === 'dark';
  root.classList.toggle('jp-mod-dark', isDark);
}
