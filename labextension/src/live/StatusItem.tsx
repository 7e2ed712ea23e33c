import { TextItem } from '@jupyterlab/statusbar';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { GuardModel } from '../model';
import { useRead } from '../parts/useRead';
import type { Trans } from '../trans';

import { isLimitSoon, isNearLimit } from './memory';
import { statusText } from './statusText';

/** Memory of the current kernel in the status bar; a click opens the panel. */
export class StatusItem extends ReactWidget {
  constructor(private readonly _options: StatusItem.IOptions) {
    super();
    this.addClass('jp-TfGuard-StatusItem');
    this.addClass('jp-mod-highlighted');
  }

  protected override render(): React.JSX.Element {
    return (
      <UseSignal signal={this._options.model.changed}>
        {() => <Item {...this._options} />}
      </UseSignal>
    );
  }
}

function Item({ model, onClick, trans }: StatusItem.IOptions): React.JSX.Element {
  const text = useRead(model.moved, () => statusText(model.brief, trans));
  const { brief, server } = model;
  const isNear = brief !== null && (isNearLimit(brief.host) || isLimitSoon(brief.host));
  return (
    <TextItem
      className={isNear ? 'jp-mod-near' : server === 'away' ? 'jp-mod-stale' : ''}
      role="button"
      tabIndex={0}
      source={text}
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
