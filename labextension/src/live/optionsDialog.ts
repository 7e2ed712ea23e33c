import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { messageOf } from '../api';
import type { GuardApi } from '../api';
import type { CodeBlock } from '../parts/CodeBlock';
import { keepEnterFromDialogs } from '../parts/dialogKeys';
import type { Option } from '../wire';
import type { Trans } from '../trans';

import { Options } from './Options';

/** Show the options of the guard on this server. Display options are JupyterLab settings. */
export async function showOptions(
  api: Pick<GuardApi, 'options'>,
  copy: CodeBlock.ICopy,
  trans: Trans
): Promise<void> {
  let options: Option[];
  try {
    options = await api.options();
  } catch (error) {
    await showErrorMessage(trans.__('Could not read the options'), messageOf(error));
    return;
  }
  keepEnterFromDialogs();
  await showDialog({
    title: trans.__('Guard options on this server'),
    body: ReactWidget.create(React.createElement(Options, { options, copy, trans })),
    buttons: [Dialog.cancelButton({ label: trans.__('Close') })]
  });
}
