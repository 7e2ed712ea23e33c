import type { ISettingRegistry } from '@jupyterlab/settingregistry';

/** User settings, with the names of `schema/plugin.json`. */
export interface IGuardSettings {
  readonly rateHertz: number;
  readonly chartHertz: number;
  readonly openReportOnCrash: boolean;
  readonly showStatusItem: boolean;
  readonly warnNearLimit: boolean;
  readonly markCells: boolean;
}

export const DEFAULT_SETTINGS: IGuardSettings = {
  rateHertz: 2,
  chartHertz: 10,
  openReportOnCrash: false,
  showStatusItem: true,
  warnNearLimit: true,
  markCells: true
};

/** Read the settings; use the default for a value of a wrong type. */
export function readSettings(
  settings: Pick<ISettingRegistry.ISettings, 'composite'>
): IGuardSettings {
  const chosen = settings.composite;
  const hertz = (name: 'rateHertz' | 'chartHertz'): number => {
    const value = chosen[name];
    return typeof value === 'number' ? value : DEFAULT_SETTINGS[name];
  };
  return {
    rateHertz: hertz('rateHertz'),
    chartHertz: hertz('chartHertz'),
    openReportOnCrash: chosen.openReportOnCrash === true,
    showStatusItem: chosen.showStatusItem !== false,
    warnNearLimit: chosen.warnNearLimit !== false,
    markCells: chosen.markCells !== false
  };
}
