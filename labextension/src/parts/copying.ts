import { Clipboard } from '@jupyterlab/apputils';
import type { Trans } from '../words';

import type { CodeBlock } from './CodeBlock';

/** The clipboard of this browser; over plain HTTP it has none, then JupyterLab's older way. */
export function systemClipboard(trans: Trans): CodeBlock.ICopy {
  return {
    label: trans.__('Copy'),
    done: trans.__('Copied'),
    failed: trans.__('Not copied'),
    write: async text => {
      if (window.isSecureContext) {
        await navigator.clipboard.writeText(text);
      } else {
        Clipboard.copyToSystem(text);
      }
    }
  };
}
