import type { ISettingRegistry } from '@jupyterlab/settingregistry';

/** What the user chose; the same names as in `schema/plugin.json`. */
export interface IGuardSettings {
  readonly rateHertz: number;
  readonly openReportOnDeath: boolean;
  readonly showStatusItem: boolean;
}

export const DEFAULT_SETTINGS: IGuardSettings = {
  rateHertz: 2,
  openReportOnDeath: false,
  showStatusItem: true
};

/** Read what the user chose; a value of a wrong kind counts as not chosen. */
export function readSettings(
  settings: Pick<ISettingRegistry.ISettings, 'composite'>
): IGuardSettings {
  const { rateHertz, openReportOnDeath, showStatusItem } = settings.composite;
  return {
    rateHertz: typeof rateHertz === 'number' ? rateHertz : DEFAULT_SETTINGS.rateHertz,
    openReportOnDeath: openReportOnDeath === true,
    showStatusItem: showStatusItem !== false
  };
}
