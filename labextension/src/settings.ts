import type { ISettingRegistry } from '@jupyterlab/settingregistry';

/** What the user chose; the same names as in `schema/plugin.json`. */
export interface IGuardSettings {
  readonly rateHertz: number;
  readonly chartHertz: number;
  readonly openReportOnDeath: boolean;
  readonly showStatusItem: boolean;
  readonly warnNearLimit: boolean;
  readonly markCells: boolean;
}

export const DEFAULT_SETTINGS: IGuardSettings = {
  rateHertz: 2,
  chartHertz: 10,
  openReportOnDeath: false,
  showStatusItem: true,
  warnNearLimit: true,
  markCells: true
};

/** Read what the user chose; a value of a wrong kind counts as not chosen. */
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
    openReportOnDeath: chosen.openReportOnDeath === true,
    showStatusItem: chosen.showStatusItem !== false,
    warnNearLimit: chosen.warnNearLimit !== false,
    markCells: chosen.markCells !== false
  };
}
