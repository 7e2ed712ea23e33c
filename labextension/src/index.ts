import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { Guard } from './guard';
import { readSettings } from './settings';

const PLUGIN_ID = 'jupyter-tfguard:plugin';

const plugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN_ID,
  description: 'Shows the memory of the current kernel and reports why kernels died.',
  autoStart: true,
  optional: [
    ICommandPalette,
    ILabShell,
    ILayoutRestorer,
    ISettingRegistry,
    IStateDB,
    IStatusBar,
    ITranslator
  ],
  activate: async (
    app: JupyterFrontEnd,
    palette: ICommandPalette | null,
    labShell: ILabShell | null,
    restorer: ILayoutRestorer | null,
    settingRegistry: ISettingRegistry | null,
    state: IStateDB | null,
    statusBar: IStatusBar | null,
    translator: ITranslator | null
  ): Promise<void> => {
    const trans = (translator ?? nullTranslator).load('jupyter_tfguard');
    const guard = new Guard(app, { labShell, palette, restorer, state, statusBar }, trans);
    guard.start();
    try {
      const settings = await settingRegistry?.load(PLUGIN_ID);
      if (settings !== undefined) {
        guard.configure(readSettings(settings));
        settings.changed.connect(() => guard.configure(readSettings(settings)), guard);
      }
    } catch (error) {
      console.warn('jupyter-tfguard: could not read the settings; using the defaults.', error);
    }
  }
};

export default plugin;
