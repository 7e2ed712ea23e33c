import { TextItem } from '@jupyterlab/statusbar';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { GuardModel } from '../model';
import { useSignal } from '../parts/useSignal';
import type { Trans } from '../words';

import { isLimitSoon, isNearLimit } from './memory';
import { statusText } from './statusText';

const REST_MS = 1_000;

/** Memory of the current kernel in the status bar; a click opens the panel. */
export class StatusItem extends ReactWidget {
  constructor(private readonly _options: StatusItem.IOptions) {
    super();
    this.addClass('jp-TfGuard-StatusItem');
    this.addClass('jp-mod-highlighted');
  }

  protected override render(): React.JSX.Element {
    return <Item {...this._options} />;
  }
}

function Item({ model, onClick, trans }: StatusItem.IOptions): React.JSX.Element {
  useSignal(model.changed);
  // Beside an open panel it need not move as fast.
  useSignal(model.moved, REST_MS);
  const { brief, server } = model;
  const isNear = brief !== null && (isNearLimit(brief.host) || isLimitSoon(brief.host));
  return (
    <TextItem
      className={isNear ? 'jp-mod-near' : server === 'away' ? 'jp-mod-stale' : ''}
      role="button"
      tabIndex={0}
      source={statusText(brief, trans)}
      title={trans.__('Memory of the current kernel. Click to open TF Guard.')}
      onClick={onClick}
      onKeyDown={event => {
        if (event.key === 'Enter' || event.key === ' ') {
          onClick();
        }
      }}
    />
  );
}

export namespace StatusItem {
  export interface IOptions {
    readonly model: GuardModel;
    readonly onClick: () => void;
    readonly trans: Trans;
  }
}
