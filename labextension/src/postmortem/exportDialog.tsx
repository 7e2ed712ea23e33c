import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import * as React from 'react';

import { messageOf } from '../api';
import type { GuardApi } from '../api';
import { keepEnterFromDialogs } from '../parts/dialogKeys';
import type { ExportChoices, ExportPreview } from '../wire';
import type { Trans } from '../trans';

import { ExportForm } from './ExportForm';

export type ExportApi = Pick<GuardApi, 'preview' | 'bundle'>;

/** Show a preview of the redacted bundle of this report; save it with the user's choices if the user agrees. */
export async function exportReport(id: string, api: ExportApi, trans: Trans): Promise<void> {
  keepEnterFromDialogs();
  const empty: ExportChoices = { without: [], replace: [] };
  let choices = empty;
  try {
    const { button } = await showDialog({
      title: trans.__('Export this report'),
      body: (
        <ExportForm
          first={await api.preview(id, empty)}
          read={(chosen: ExportChoices): Promise<ExportPreview> => api.preview(id, chosen)}
          onChoices={chosen => {
            choices = chosen;
          }}
          trans={trans}
        />
      ),
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.okButton({ label: trans.__('Download') })
      ],
      defaultButton: 0 // Enter must not save before the user has seen the preview
    });
    if (button.accept) {
      save(await api.bundle(id, choices), `tfguard-${id}.zip`);
    }
  } catch (error) {
    await showErrorMessage(trans.__('Could not export the report'), messageOf(error));
  }
}

function save(content: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
