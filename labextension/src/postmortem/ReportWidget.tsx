import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import * as React from 'react';

import { messageOf } from '../api';
import type { GuardApi } from '../api';
import { shieldIcon } from '../icons';
import { Reloadable } from '../parts/Boundary';
import type { CodeBlock } from '../parts/CodeBlock';
import { Notice } from '../parts/Notice';
import { fileName, shortName } from '../units';
import { clock, parseStamp } from '../when';
import type { Report as ReportData } from '../wire';
import type { Trans } from '../trans';

import { Report } from './Report';

/** Maximum length of a name, so that the time fits into the tab. */
const TAB_LENGTH = 18;

/** Id of the tab of one report: one tab per report. */
export function reportTabId(reportId: string): string {
  return `jp-tfguard-report-${reportId}`;
}

/** One report, or the error if it cannot be loaded. */
export class ReportWidget extends ReactWidget {
  constructor(private readonly _options: ReportWidget.IOptions) {
    super();
    const { trans } = _options;
    this.addClass('jp-TfGuard-ReportView');
    this.title.icon = shieldIcon;
    this.title.label = trans.__('Crash report');
  }

  get reportId(): string {
    return this._options.reportId;
  }

  /** Fetch the report and show it. */
  async load(): Promise<void> {
    const { api, onRead, reportId, trans } = this._options;
    try {
      this._report = await api.report(reportId);
      await onRead();
    } catch (error) {
      this._failure = messageOf(error);
    }
    if (this.isDisposed) {
      return;
    }
    if (this._report !== null) {
      const { crashed_at, notebook_path, title } = this._report;
      const name =
        notebook_path === null
          ? trans.__('Crash report')
          : shortName(fileName(notebook_path), TAB_LENGTH);
      const died = parseStamp(crashed_at);
      this.title.label = died === null ? name : `${name} ${clock(died)}`;
      this.title.caption = title;
    }
    this.update();
  }

  /** Retry after a failure. */
  async loadAgain(): Promise<void> {
    if (this._report === null && this._failure !== null) {
      this._failure = null;
      this.update();
      await this.load();
    }
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    // The tab gives every region the label "main area content".
    this.node.setAttribute('aria-label', this._options.trans.__('Crash report'));
  }

  protected override render(): React.JSX.Element {
    const { api, copy, exportIt, forget, openPanel, reportId, trans } = this._options;
    if (this._report !== null) {
      return (
        <Reloadable label={trans.__('Reload report')} trans={trans}>
          <Report
            report={this._report}
            copy={copy}
            api={api}
            onExport={exportIt}
            onForget={forget}
            onSeeAll={openPanel}
            trans={trans}
          />
        </Reloadable>
      );
    }
    return this._failure === null ? (
      <div className="jp-TfGuard-quiet">{trans.__('Loading the report…')}</div>
    ) : (
      <Notice
        kind="error"
        text={trans.__('Could not read report %1.', reportId)}
        fix={this._failure}
      />
    );
  }

  private _report: ReportData | null = null;
  private _failure: string | null = null;
}

export namespace ReportWidget {
  export interface IOptions {
    readonly reportId: string;
    readonly api: Pick<GuardApi, 'report'> & Report.IApi;
    /** The report was loaded and is shown. */
    readonly onRead: () => Promise<void>;
    /** Shows a preview of the bundle, and saves it. */
    readonly exportIt: () => void;
    /** Deletes the report after confirmation. */
    readonly forget: () => void;
    /** Shows the list of all crashes. */
    readonly openPanel: () => void;
    readonly copy: CodeBlock.ICopy;
    readonly trans: Trans;
  }
}
