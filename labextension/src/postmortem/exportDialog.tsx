import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import * as React from 'react';

import { messageOf } from '../api';
import type { GuardApi } from '../api';
import { keepEnterFromDialogs } from '../parts/dialogKeys';
import { humanBytes } from '../units';
import type { ExportPreview } from '../wire';
import type { Trans } from '../words';

/** Show what a redacted bundle of this report holds; on consent, save it. */
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
      defaultButton: 0 // nothing is saved before it was looked at
    });
    if (button.accept) {
      save(await api.bundle(id), `tfguard-${id}.zip`);
    }
  } catch (error) {
    await showErrorMessage(trans.__('The report could not be exported'), messageOf(error));
  }
}

function Preview(props: ExportPreview & { trans: Trans }): React.JSX.Element {
  const { files, redacted_count, trans } = props;
  return (
    <div className="jp-TfGuard-Export">
      <p>
        {trans.__(
          'Secrets, home folders, names of user and machine: %1 taken out. Look through the files before you hand them on.',
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
            {is_cut && trans.__('… The rest is in the file alone.')}
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
