import { TextItem } from '@jupyterlab/statusbar';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { GuardModel } from '../model';
import { bytesOfLimit, humanBytes } from '../units';
import type { Host, KernelState } from '../wire';
import type { Trans } from '../words';

import { isNearLimit } from './memory';

/** `5.9 of 8.0 GiB`, with ▲ near the limit; empty while nothing is known. */
export function statusText(kernel: KernelState | null, trans: Trans): string {
  if (kernel === null || !kernel.watched || kernel.host.rss_bytes === null) {
    return '';
  }
  const { host } = kernel;
  return isNearLimit(host) ? `▲ ${amount(host, trans)}` : amount(host, trans);
}

function amount({ rss_bytes, limit }: Host, trans: Trans): string {
  return limit === null
    ? humanBytes(rss_bytes)
    : trans.__('%1 of %2', ...bytesOfLimit(rss_bytes, limit.bytes));
}

/** Memory of the current kernel in the status bar; a click opens the panel. */
export class StatusItem extends ReactWidget {
  constructor(private readonly _options: StatusItem.IOptions) {
    super();
    this.addClass('jp-TfGuard-StatusItem');
    this.addClass('jp-mod-highlighted');
  }

  protected override render(): React.JSX.Element {
    const { model, onClick, trans } = this._options;
    return (
      <UseSignal signal={model.changed}>
        {() => {
          const { kernel, server } = model;
          const isNear = kernel !== null && isNearLimit(kernel.host);
          return (
            <TextItem
              className={isNear ? 'jp-mod-near' : server === 'away' ? 'jp-mod-stale' : ''}
              role="button"
              tabIndex={0}
              source={statusText(kernel, trans)}
              title={trans.__('Memory of the current kernel. Click to open TF Guard.')}
              onClick={onClick}
              onKeyDown={event => {
                if (event.key === 'Enter' || event.key === ' ') {
                  onClick();
                }
              }}
            />
          );
        }}
      </UseSignal>
    );
  }
}

export namespace StatusItem {
  export interface IOptions {
    readonly model: GuardModel;
    readonly onClick: () => void;
    readonly trans: Trans;
  }
}
