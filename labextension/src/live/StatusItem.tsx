import { TextItem } from '@jupyterlab/statusbar';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { GuardModel } from '../model';
import type { Trans } from '../words';

import { isNearLimit } from './memory';
import { statusText } from './statusText';

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
