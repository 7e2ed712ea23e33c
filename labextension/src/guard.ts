/** Connects model, panel, reports and notifications for one application. */
import type { ILabShell, ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, Notification, showErrorMessage } from '@jupyterlab/apputils';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { IStateDB } from '@jupyterlab/statedb';
import type { IStatusBar } from '@jupyterlab/statusbar';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import { GuardApi, messageOf } from './api';
import { addCommands, CommandIDs } from './commands';
import { PANEL_ID, PanelWidget } from './live/PanelWidget';
import { showOptions } from './live/optionsDialog';
import { showStacks } from './live/stacksDialog';
import { StatusItem } from './live/StatusItem';
import { warnNearLimit } from './live/warnNearLimit';
import { GuardModel } from './model';
import { systemClipboard } from './parts/copying';
import { CrashNotice } from './postmortem/CrashNotice';
import type { INotifier } from './postmortem/CrashNotice';
import { CellMarks } from './postmortem/cellMarks';
import { watchRestartDialogs } from './postmortem/restartDialog';
import type { IOpenSession } from './postmortem/restartDialog';
import { Reports } from './reports';
import { hasServerPart } from './serverLink';
import { CurrentSession, openNotebooks } from './session';
import { DEFAULT_SETTINGS } from './settings';
import type { IGuardSettings } from './settings';
import { GuardStream } from './stream';

/** Optional services of the application; null if absent. */
export interface IHosts {
  readonly labShell: ILabShell | null;
  readonly palette: ICommandPalette | null;
  readonly restorer: ILayoutRestorer | null;
  readonly state: IStateDB | null;
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
    this._notice = new CrashNotice({
      trans: _trans,
      fetch: id => this._api.report(id),
      hasNotebook: id => this._openSessions().some(({ kernelId }) => kernelId === id),
      notifier: this._notifier(),
      onCrash: entry => {
        void this._model.refreshCrashes();
        if (this._settings.openReportOnCrash && !entry.kernel_alive) {
          this._reports.open(entry.id);
        }
      }
    });
    this._reports = new Reports({
      api: this._api,
      model: this._model,
      labShell: _hosts.labShell,
      copy: this._copy,
      openPanel: () => this._openPanel(),
      onSettled: id => this._notice.dismiss(id),
      trans: _trans
    });
    this._panel = new PanelWidget({
      model: this._model,
      copy: this._copy,
      openNotebook: path => void this._openNotebook(path),
      openReport: id => this._reports.open(id),
      showOptions: () => void _app.commands.execute(CommandIDs.showOptions),
      showStacks: id => void showStacks(id, this._api, this._copy, _trans),
      state: _hosts.state,
      trans: _trans
    });
    warnNearLimit({
      model: this._model,
      isEnabled: () => this._settings.warnNearLimit,
      openPanel: () => this._openPanel(),
      trans: _trans
    });
    this._cellMarks = new CellMarks({
      model: this._model,
      markRead: id => void this._reports.markRead(id),
      openReport: id => this._reports.open(id),
      shell: _hosts.labShell ?? _app.shell,
      trans: _trans
    });
    this._addCommands();
    this._addWidgets();
    this._listen();
  }

  /** Apply the user's settings. */
  configure(settings: IGuardSettings): void {
    this._settings = settings;
    this._settingsChanged.emit();
    this._cellMarks.setEnabled(settings.markCells);
    this._updateView();
  }

  /** Start requesting data from the server. */
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
        showReport: id => this._reports.open(id),
        showLastReport: () => this._reports.openLast(),
        showStacks: () => this._showStacks(),
        showOptions: () => showOptions(this._api, this._copy, this._trans)
      },
      this._trans
    );
    const offered = [
      CommandIDs.openPanel,
      CommandIDs.showLastReport,
      CommandIDs.showStacks,
      CommandIDs.showOptions
    ];
    for (const command of offered) {
      palette?.addItem({ command, category: this._trans.__('TF Guard') });
    }
  }

  private _addWidgets(): void {
    const { restorer, statusBar } = this._hosts;
    this._app.shell.add(this._panel, 'right', { rank: 610, type: 'TF Guard' });
    restorer?.add(this._panel, PANEL_ID);
    if (restorer !== null) {
      this._reports.restore(restorer);
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
        // The event socket may have closed while the page was hidden, so events may be missing.
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
      isGuarding: () => hasServerPart(this._model.server),
      openReport: id => this._reports.open(id),
      readCrashes: () => this._model.refreshCrashes(),
      sessions: () => this._openSessions()
    });
  }

  /** Open notebooks that have a kernel. */
  private _openSessions(): IOpenSession[] {
    return openNotebooks(this._app.shell).flatMap(({ sessionContext: { session } }) =>
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
    );
  }

  private _updateView(): void {
    const { chartHertz, rateHertz, showStatusItem, warnNearLimit } = this._settings;
    this._model.setView({
      isPageVisible: !document.hidden,
      isPanelVisible: this._panel.isVisible,
      isFollowed: warnNearLimit || (showStatusItem && this._hosts.statusBar !== null),
      rateHertz,
      chartHertz
    });
  }

  private _openPanel(): void {
    this._app.shell.activateById(PANEL_ID);
  }

  /** Open a notebook, or bring its tab to the front. */
  private async _openNotebook(path: string): Promise<void> {
    try {
      await this._app.commands.execute('docmanager:open', { path });
    } catch (error) {
      await showErrorMessage(this._trans.__('Could not open the notebook'), messageOf(error));
    }
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

  private _notifier(): INotifier {
    return {
      show: (kind, message, reportId) => {
        const id = Notification.emit(message, kind, {
          autoClose: false,
          actions: [
            {
              label: this._trans.__('Show why'),
              caption: this._trans.__('Open the crash report'),
              displayType: 'accent',
              callback: () => this._reports.open(reportId)
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
  private readonly _notice: CrashNotice;
  private readonly _cellMarks: CellMarks;
  private readonly _panel: PanelWidget;
  private readonly _reports: Reports;
  private readonly _settingsChanged = new Signal<this, void>(this);
  private _settings: IGuardSettings = DEFAULT_SETTINGS;
}
