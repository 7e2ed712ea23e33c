/** Puts the parts together: model, panel, reports and notices around one application. */
import type { ILabShell, ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import {
  Dialog,
  MainAreaWidget,
  Notification,
  showDialog,
  showErrorMessage,
  WidgetTracker
} from '@jupyterlab/apputils';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { IStatusBar } from '@jupyterlab/statusbar';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import { GuardApi } from './api';
import { addCommands, CommandIDs } from './commands';
import { PANEL_ID, PanelWidget } from './live/PanelWidget';
import { showStacks } from './live/stacksDialog';
import { StatusItem } from './live/StatusItem';
import { GuardModel } from './model';
import { systemClipboard } from './parts/copying';
import { DeathNotice } from './postmortem/DeathNotice';
import type { INotifier } from './postmortem/DeathNotice';
import { ReportWidget, reportTabId } from './postmortem/ReportWidget';
import { watchRestartDialogs } from './postmortem/RestartDialog';
import { CurrentSession, sessionWidgets } from './session';
import { DEFAULT_SETTINGS } from './settings';
import type { IGuardSettings } from './settings';
import { GuardStream } from './stream';

/** What the application may offer beside its core; each is null where there is none. */
export interface IHosts {
  readonly labShell: ILabShell | null;
  readonly palette: ICommandPalette | null;
  readonly restorer: ILayoutRestorer | null;
  readonly statusBar: IStatusBar | null;
}

export class Guard {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _hosts: IHosts,
    private readonly _trans: TranslationBundle
  ) {
    const settings = _app.serviceManager.serverSettings;
    this._api = new GuardApi(settings);
    this._model = new GuardModel({ api: this._api, stream: new GuardStream(settings) });
    this._copy = systemClipboard(_trans);
    this._session = new CurrentSession(_app.shell);
    this._notice = new DeathNotice({
      trans: _trans,
      fetch: id => this._api.report(id),
      notifier: this._notifier(),
      onDeath: entry => {
        void this._model.refreshCrashes();
        if (this._settings.openReportOnDeath && !entry.kernel_alive) {
          this._showReport(entry.id);
        }
      },
      onCounted: () => void this._model.refreshCrashes()
    });
    this._panel = new PanelWidget({
      model: this._model,
      copy: this._copy,
      openNotebook: path => void this._openNotebook(path),
      openReport: id => this._showReport(id),
      showStacks: id => void showStacks(id, this._api, this._copy, _trans),
      trans: _trans
    });
    this._addCommands();
    this._addWidgets();
    this._listen();
  }

  /** Take over what the user chose, now or later. */
  configure(settings: IGuardSettings): void {
    this._settings = settings;
    this._settingsChanged.emit();
    this._updateView();
  }

  /** Begin to ask the server. */
  start(): void {
    this._updateView();
    void this._model.start();
  }

  private _addCommands(): void {
    const { palette } = this._hosts;
    addCommands(
      this._app.commands,
      {
        openPanel: () => this._openPanel(),
        showReport: id => this._showReport(id),
        showLastReport: () => this._showLastReport(),
        showStacks: () => this._showStacks()
      },
      this._trans
    );
    const offered = [CommandIDs.openPanel, CommandIDs.showLastReport, CommandIDs.showStacks];
    for (const command of offered) {
      palette?.addItem({ command, category: this._trans.__('TF Guard') });
    }
  }

  private _addWidgets(): void {
    const { restorer, statusBar } = this._hosts;
    this._app.shell.add(this._panel, 'right', { rank: 610, type: 'TF Guard' });
    restorer?.add(this._panel, PANEL_ID);
    if (restorer !== null) {
      void restorer.restore(this._reports, {
        command: CommandIDs.showReport,
        args: widget => ({ id: widget.content.reportId }),
        name: widget => widget.content.reportId
      });
    }
    statusBar?.registerStatusItem('jupyter-tfguard:memory', {
      item: new StatusItem({
        model: this._model,
        onClick: () => this._openPanel(),
        trans: this._trans
      }),
      align: 'left',
      rank: 20,
      isActive: () => this._settings.showStatusItem,
      activeStateChanged: this._settingsChanged
    });
  }

  private _listen(): void {
    const { serviceManager, restored } = this._app;
    this._session.changed.connect((_, target) => this._model.setTarget(target), this);
    this._model.setTarget(this._session.target);
    void restored.then(() => this._session.update());
    this._panel.visibilityChanged.connect(this._updateView, this);
    this._model.crashesRead.connect((_, crashes) => this._notice.onCrashesRead(crashes), this);
    serviceManager.events.stream.connect(
      (_, emission) => void this._notice.onEmission(emission),
      this
    );
    document.addEventListener('visibilitychange', () => {
      this._updateView();
      if (!document.hidden && this._model.server === 'ok') {
        // While hidden, the event socket may have closed; what it would have said is read here.
        void this._model.refreshCrashes();
      }
    });
    this._watchDialogs();
  }

  private _watchDialogs(): void {
    watchRestartDialogs({
      dialogs: Dialog.tracker,
      notice: this._notice,
      trans: this._trans,
      isGuarding: () => this._model.server === 'ok',
      openReport: id => this._showReport(id),
      readCrashes: () => this._model.refreshCrashes(),
      sessions: () =>
        sessionWidgets(this._app.shell).flatMap(({ sessionContext: { session } }) =>
          session?.kernel
            ? [
                {
                  path: session.path,
                  name: session.name,
                  kernelId: session.kernel.id,
                  status: session.kernel.status
                }
              ]
            : []
        )
    });
  }

  private _updateView(): void {
    const { rateHertz, showStatusItem } = this._settings;
    this._model.setView({
      isPageVisible: !document.hidden,
      isPanelVisible: this._panel.isVisible,
      isStatusItemShown: showStatusItem && this._hosts.statusBar !== null,
      rateHertz
    });
  }

  private _openPanel(): void {
    this._app.shell.activateById(PANEL_ID);
  }

  /** Open the notebook that holds a card, or bring its tab to the front. */
  private async _openNotebook(path: string): Promise<void> {
    try {
      await this._app.commands.execute('docmanager:open', { path });
    } catch (error) {
      await showErrorMessage(
        this._trans.__('The notebook could not be opened'),
        error instanceof Error ? error.message : String(error)
      );
    }
  }

  /** Open the report in a tab of its own, or bring its tab to the front. */
  private _showReport(id: string): void {
    const { shell } = this._app;
    const tabId = reportTabId(id);
    let tab = this._reports.find(widget => widget.id === tabId);
    if (tab === undefined) {
      const content = new ReportWidget({
        reportId: id,
        fetch: async reportId => {
          const report = await this._api.report(reportId);
          await this._model.markRead(reportId);
          return report;
        },
        markdown: reportId => this._api.markdown(reportId),
        forget: reportId => this._forget(reportId),
        copy: this._copy,
        trans: this._trans
      });
      tab = new MainAreaWidget({ content });
      tab.id = tabId;
      tab.title.closable = true;
      void content.load();
      void this._reports.add(tab);
      // Notebook 7 has room for one widget in its main area: there the report goes to the side.
      if (this._hosts.labShell === null) {
        shell.add(tab, 'right');
      } else {
        shell.add(tab, 'main', { mode: 'split-right', type: 'TF Guard' });
      }
    }
    this._notice.dismiss(id);
    shell.activateById(tabId);
  }

  /** Remove a report for good, after asking, and close its tab. */
  private async _forget(id: string): Promise<void> {
    const trans = this._trans;
    const { button } = await showDialog({
      title: trans.__('Forget this report?'),
      body: trans.__(
        'It is removed from the disk, with all that was recorded. This cannot be undone.'
      ),
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.warnButton({ label: trans.__('Forget') })
      ]
    });
    if (!button.accept) {
      return;
    }
    try {
      await this._api.forget(id);
    } catch (error) {
      await showErrorMessage(
        trans.__('The report could not be removed'),
        error instanceof Error ? error.message : String(error)
      );
      return;
    }
    this._notice.dismiss(id);
    this._reports.find(widget => widget.id === reportTabId(id))?.dispose();
    await this._model.refreshCrashes();
  }

  private async _showStacks(): Promise<void> {
    const kernelId = this._model.target?.kernelId ?? null;
    if (kernelId === null) {
      const text = this._trans.__('Open a notebook or a console with a kernel first.');
      Notification.info(text, { autoClose: 4000 });
    } else {
      await showStacks(kernelId, this._api, this._copy, this._trans);
    }
  }

  private async _showLastReport(): Promise<void> {
    const crashes = await this._model.refreshCrashes();
    const last = crashes[0];
    if (last === undefined) {
      Notification.info(this._trans.__('No kernel has died here yet.'), { autoClose: 4000 });
    } else {
      this._showReport(last.id);
    }
  }

  private _notifier(): INotifier {
    return {
      show: (kind, message, reportId) => {
        const id = Notification.emit(message, kind, {
          autoClose: false,
          actions: [
            {
              label: this._trans.__('Show why'),
              caption: this._trans.__('Open the report of this death'),
              displayType: 'accent',
              callback: () => this._showReport(reportId)
            }
          ]
        });
        return () => Notification.dismiss(id);
      }
    };
  }

  private readonly _api: GuardApi;
  private readonly _model: GuardModel;
  private readonly _copy: ReturnType<typeof systemClipboard>;
  private readonly _session: CurrentSession;
  private readonly _notice: DeathNotice;
  private readonly _panel: PanelWidget;
  private readonly _reports = new WidgetTracker<MainAreaWidget<ReportWidget>>({
    namespace: 'tfguard-reports'
  });
  private readonly _settingsChanged = new Signal<this, void>(this);
  private _settings: IGuardSettings = DEFAULT_SETTINGS;
}
