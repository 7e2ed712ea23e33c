import { Clipboard } from '@jupyterlab/apputils';
import type { Trans } from '../trans';

import type { CodeBlock } from './CodeBlock';

/** The browser's clipboard; over plain HTTP, which has none, JupyterLab's older method. */
export function systemClipboard(trans: Trans): CodeBlock.ICopy {
  return {
    label: trans.__('Copy'),
    done: trans.__('Copied'),
    failed: trans.__('Copy failed'),
    write: async text => {
      if (window.isSecureContext) {
        await navigator.clipboard.writeText(text);
      } else {
        Clipboard.copyToSystem(text);
      }
    }
  };
}
