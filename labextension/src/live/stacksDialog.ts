import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';

import { messageOf } from '../api';
import type { GuardApi } from '../api';
import type { CodeBlock } from '../parts/CodeBlock';
import { keepEnterFromDialogs } from '../parts/dialogKeys';
import type { Trans } from '../trans';

/** Show the stack traces of a running kernel. The kernel keeps running. */
export async function showStacks(
  kernelId: string,
  api: Pick<GuardApi, 'stacks'>,
  copy: CodeBlock.ICopy,
  trans: Trans
): Promise<void> {
  let text: string;
  try {
    text = (await api.stacks(kernelId)).join('\n');
  } catch (error) {
    await showErrorMessage(trans.__('Could not read the stack traces'), messageOf(error));
    return;
  }
  keepEnterFromDialogs();
  const body = new Widget();
  body.addClass('jp-TfGuard-Stacks');
  const lines = document.createElement('pre');
  lines.tabIndex = 0;
  lines.textContent = text;
  body.node.append(lines);
  const { button } = await showDialog({
    title: trans.__('Stack traces of all threads, innermost call first'),
    body,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Close') }),
      Dialog.okButton({ label: copy.label })
    ],
    defaultButton: 0
  });
  if (!button.accept) {
    return;
  }
  try {
    await copy.write(text);
  } catch (error) {
    await showErrorMessage(copy.failed, messageOf(error));
  }
}
