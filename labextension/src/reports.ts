/** Report tabs: opened, restored after a reload, deleted. */
import type { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import {
  Dialog,
  MainAreaWidget,
  Notification,
  showDialog,
  showErrorMessage,
  WidgetTracker
} from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';

import { messageOf } from './api';
import type { GuardApi } from './api';
import { CommandIDs } from './commands';
import type { GuardModel } from './model';
import type { CodeBlock } from './parts/CodeBlock';
import { exportReport } from './postmortem/exportDialog';
import { ReportWidget, reportTabId } from './postmortem/ReportWidget';
import type { Trans } from './trans';

/** Do not split a narrower area: half of it is too small for the chart. */
const SPLIT_PIXELS = 640;

export class Reports {
  constructor(private readonly _options: Reports.IOptions) {}

  /** Reopen the tabs that were open before a reload. */
  restore(restorer: ILayoutRestorer): void {
    void restorer.restore(this._tabs, {
      command: CommandIDs.showReport,
      args: widget => ({ id: widget.content.reportId }),
      name: widget => widget.content.reportId
    });
  }

  /** Show a report in a tab, or as a page in Notebook 7. */
  open(id: string): void {
    const { labShell, onSettled } = this._options;
    if (labShell !== null) {
      this._openTab(id, labShell);
    } else if (this._openPage(id)) {
      void this.markRead(id);
    } else {
      return; // the browser blocked the pop-up; keep the notification
    }
    onSettled(id);
  }

  /** Mark as read; a failure is only logged. */
  async markRead(id: string): Promise<void> {
    try {
      await this._options.model.markRead(id);
    } catch (error) {
      console.warn('jupyter-tfguard: could not mark the report as read.', error);
    }
  }

  async openLast(): Promise<void> {
    const { model, trans } = this._options;
    const crashes = (await model.refreshCrashes()) ?? model.crashes;
    const last = crashes?.[0];
    if (last !== undefined) {
      this.open(last.id);
    } else if (crashes === null) {
      Notification.error(trans.__('Could not read the list of crashes.'), { autoClose: 4000 });
    } else {
      Notification.info(trans.__('No kernel has crashed yet.'), { autoClose: 4000 });
    }
  }

  /** Open the report in a new tab, or bring its tab to the front. */
  private _openTab(id: string, shell: ILabShell): void {
    const tabId = reportTabId(id);
    const known = this._find(id);
    if (known !== undefined) {
      void known.content.loadAgain();
    } else {
      const content = this._content(id);
      // Split only for the first report, and only a wide area.
      const beside = this._tabs.currentWidget;
      const room = document.getElementById('jp-main-dock-panel')?.clientWidth ?? 0;
      const tab = new MainAreaWidget({ content });
      tab.id = tabId;
      tab.title.closable = true;
      void content.load();
      void this._tabs.add(tab);
      shell.add(tab, 'main', {
        type: 'TF Guard',
        ...(beside !== null
          ? { mode: 'tab-after', ref: beside.id }
          : { mode: room < SPLIT_PIXELS ? 'tab-after' : 'split-right' })
      });
    }
    shell.activateById(tabId);
  }

  /** Open the server's HTML page: the main area of Notebook 7 has room for one widget only. */
  private _openPage(id: string): boolean {
    const base = this._options.api.settings.baseUrl;
    const url = URLExt.join(base, 'tfguard', 'report', encodeURIComponent(id));
    return window.open(url, reportTabId(id)) !== null;
  }

  private _content(id: string): ReportWidget {
    const { api, copy, openPanel, trans } = this._options;
    return new ReportWidget({
      reportId: id,
      api,
      onRead: () => this.markRead(id),
      openPanel,
      forget: () => void this._forget(id),
      exportIt: () => void exportReport(id, api, trans),
      copy,
      trans
    });
  }

  private _find(id: string): MainAreaWidget<ReportWidget> | undefined {
    return this._tabs.find(widget => widget.id === reportTabId(id));
  }

  /** After confirmation, delete a report and close its tab. */
  private async _forget(id: string): Promise<void> {
    const { api, model, onSettled, trans } = this._options;
    const { button } = await showDialog({
      title: trans.__('Delete this report?'),
      body: trans.__(
        'This deletes the report and everything recorded for it from the disk. You cannot undo this.'
      ),
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.warnButton({ label: trans.__('Delete') })
      ],
      defaultButton: 0 // the Enter key that opened the dialog must not confirm it
    });
    if (!button.accept) {
      return;
    }
    try {
      await api.forget(id);
    } catch (error) {
      await showErrorMessage(trans.__('Could not delete the report'), messageOf(error));
      return;
    }
    onSettled(id);
    this._find(id)?.dispose();
    await model.refreshCrashes();
  }

  private readonly _tabs = new WidgetTracker<MainAreaWidget<ReportWidget>>({
    namespace: 'tfguard-reports'
  });
}

export namespace Reports {
  export interface IOptions {
    readonly api: GuardApi;
    readonly model: GuardModel;
    /** Null in Notebook 7. */
    readonly labShell: ILabShell | null;
    readonly copy: CodeBlock.ICopy;
    /** Shows the list of all crashes. */
    readonly openPanel: () => void;
    /** A report was opened or deleted, so its notification can go. */
    readonly onSettled: (id: string) => void;
    readonly trans: Trans;
  }
}
