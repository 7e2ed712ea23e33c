import { Notification } from '@jupyterlab/apputils';

import type { GuardModel } from '../model';
import { fileName, humanBytes, shortName } from '../units';
import type { LimitAhead } from '../wire';
import type { Trans } from '../trans';

/** The status bar and the panel keep showing the forecast. */
const AUTO_CLOSE_MS = 15_000;

/** Show one notification per run whose memory grows toward its limit, for any notebook. */
export function warnNearLimit(options: {
  readonly model: Pick<GuardModel, 'limitsAhead'>;
  readonly isEnabled: () => boolean;
  readonly openPanel: () => void;
  readonly trans: Trans;
}): void {
  const { model, isEnabled, openPanel, trans } = options;
  const warned = new Set<string>();
  model.limitsAhead.connect((_, kernels) => {
    for (const kernel of isEnabled() ? kernels : []) {
      if (!warned.has(kernel.run)) {
        warned.add(kernel.run);
        Notification.warning(sentenceOf(kernel, trans), {
          autoClose: AUTO_CLOSE_MS,
          actions: [
            {
              label: trans.__('Show memory'),
              caption: trans.__('Open the TF Guard panel'),
              callback: openPanel
            }
          ]
        });
      }
    }
  }, options);
}

/** The text has no changing numbers: a notification is not updated. */
function sentenceOf({ is_soon, limit, notebook_path }: LimitAhead, trans: Trans): string {
  const name = notebook_path === null ? trans.__('A kernel') : shortName(fileName(notebook_path));
  const words = [name, limit.name, humanBytes(limit.bytes)] as const;
  return is_soon
    ? trans.__('%1: memory will soon reach the %2 of %3.', ...words)
    : trans.__('%1: memory is rising and is near the %2 of %3.', ...words);
}
