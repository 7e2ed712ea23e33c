import { Notification } from '@jupyterlab/apputils';

import type { GuardModel } from '../model';
import type { Trans } from '../words';

import { LimitWarning } from './LimitWarning';

/** Status bar and panel go on showing the forecast. */
const AUTO_CLOSE_MS = 15_000;

/** Warn of a limit that comes near, as JupyterLab's notifications; returns what switches it. */
export function warnNearLimit(options: {
  readonly model: GuardModel;
  readonly openPanel: () => void;
  readonly trans: Trans;
}): (isEnabled: boolean) => void {
  const { model, openPanel, trans } = options;
  const warning = new LimitWarning({
    show: message => {
      const id = Notification.warning(message, {
        autoClose: AUTO_CLOSE_MS,
        actions: [
          {
            label: trans.__('Show memory'),
            caption: trans.__('Open the TF Guard panel'),
            callback: openPanel
          }
        ]
      });
      return () => Notification.dismiss(id);
    },
    trans
  });
  let isOn = true;
  const update = (): void => {
    // To a hidden page no numbers come, and what it shows stays until it has new ones.
    if (isOn && !document.hidden) {
      const { brief, server, target } = model;
      warning.update(
        server === 'ok' ? brief : null,
        target?.path ?? null,
        target?.kernelId ?? null
      );
    }
  };
  model.changed.connect(update);
  model.moved.connect(update);
  return isEnabled => {
    isOn = isEnabled;
    if (!isOn) {
      warning.clear();
    }
  };
}
