import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import * as React from 'react';

import { messageOf } from '../api';
import type { GuardApi } from '../api';
import { keepEnterFromDialogs } from '../parts/dialogKeys';
import { humanBytes } from '../units';
import type { ExportPreview } from '../wire';
import type { Trans } from '../words';

/** Show a preview of the redacted bundle of this report; save it if the user agrees. */
export async function exportReport(
  id: string,
  api: Pick<GuardApi, 'preview' | 'bundle'>,
  trans: Trans
): Promise<void> {
  keepEnterFromDialogs();
  try {
    const { button } = await showDialog({
      title: trans.__('Export this report'),
      body: <Preview {...await api.preview(id)} trans={trans} />,
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.okButton({ label: trans.__('Download') })
      ],
      defaultButton: 0 // Enter must not save before the user has seen the preview
    });
    if (button.accept) {
      save(await api.bundle(id), `tfguard-${id}.zip`);
    }
  } catch (error) {
    await showErrorMessage(trans.__('Could not export the report'), messageOf(error));
  }
}

function Preview(props: ExportPreview & { trans: Trans }): React.JSX.Element {
  const { files, redacted_count, trans } = props;
  return (
    <div className="jp-TfGuard-Export">
      <p>
        {trans.__(
          'Removed items (secrets, home folders, user and machine names): %1. Check the files before you share them.',
          redacted_count
        )}
      </p>
      {files.map(({ name, bytes, text, is_cut }) => (
        <details key={name}>
          <summary>
            {name} · {humanBytes(bytes)}
          </summary>
          <pre tabIndex={0}>
            {text}
            {is_cut && trans.__('… The exported file has the rest.')}
          </pre>
        </details>
      ))}
    </div>
  );
}

function save(content: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
