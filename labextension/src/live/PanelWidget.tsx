import type { IStateDB } from '@jupyterlab/statedb';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import * as React from 'react';

import { shieldIcon } from '../icons';
import type { GuardModel } from '../model';
import { Reloadable } from '../parts/Boundary';
import type { CodeBlock } from '../parts/CodeBlock';
import { DismissedContext, FoldingContext, KeptSet } from '../parts/kept';
import type { Trans } from '../trans';

import { Panel } from './Panel';

export const PANEL_ID = 'jp-tfguard-panel';

/** The panel as a widget of the side area. */
export class PanelWidget extends ReactWidget {
  constructor(private readonly _options: PanelWidget.IOptions) {
    super();
    const { state, trans } = _options;
    this._folded = new KeptSet('folded', state, () => this.update());
    this._dismissed = new KeptSet('dismissed', state, () => this.update());
    this.id = PANEL_ID;
    this.title.icon = shieldIcon;
    this.title.caption = trans.__('TF Guard: kernel memory and past crashes');
    this.addClass('jp-TfGuard-Panel');
    this.node.setAttribute('role', 'region');
    this.node.tabIndex = -1;
    this.node.setAttribute('aria-label', trans.__('TF Guard'));
  }

  /** The panel was opened or closed. */
  get visibilityChanged(): ISignal<this, boolean> {
    return this._visibilityChanged;
  }

  protected override render(): React.JSX.Element {
    const { model, copy, openNotebook, openReport, showOptions, showStacks, trans } = this._options;
    return (
      <UseSignal signal={model.changed}>
        {() => (
          <FoldingContext.Provider value={this._folded}>
            <DismissedContext.Provider value={this._dismissed}>
              <Reloadable label={trans.__('Reload panel')} trans={trans}>
                <Panel
                  model={model}
                  copy={copy}
                  now={Date.now() / 1000}
                  onDismiss={event => model.dismiss(event)}
                  onOpenNotebook={openNotebook}
                  onOpenReport={openReport}
                  onShowOptions={showOptions}
                  onShowStacks={showStacks}
                  trans={trans}
                />
              </Reloadable>
            </DismissedContext.Provider>
          </FoldingContext.Provider>
        )}
      </UseSignal>
    );
  }

  /** A command opened the panel: move the keyboard focus there. */
  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    this.node.focus();
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._visibilityChanged.emit(true);
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._visibilityChanged.emit(false);
  }

  private readonly _folded: KeptSet;
  private readonly _dismissed: KeptSet;
  private readonly _visibilityChanged = new Signal<this, boolean>(this);
}

export namespace PanelWidget {
  export interface IOptions {
    readonly model: GuardModel;
    readonly copy: CodeBlock.ICopy;
    readonly openNotebook: (path: string) => void;
    readonly openReport: (id: string) => void;
    readonly showOptions: () => void;
    readonly showStacks: (kernelId: string) => void;
    readonly state: IStateDB | null;
    readonly trans: Trans;
  }
}
