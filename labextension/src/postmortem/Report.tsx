import * as React from 'react';

import type { GuardApi } from '../api';
import { Boundary } from '../parts/Boundary';
import { CopyButton } from '../parts/CodeBlock';
import type { CodeBlock } from '../parts/CodeBlock';
import { Notice } from '../parts/Notice';
import { Section } from '../parts/Section';
import { fileName } from '../units';
import { fullTime } from '../when';
import type { Report as ReportData } from '../wire';
import { confidenceWord } from '../trans';
import type { Trans } from '../trans';

import { AdviceList } from './AdviceList';
import { CrashChart } from './CrashChart';
import { EvidenceList } from './EvidenceList';
import { Arrays, Lines, Saved } from './Remains';

/** Why a kernel died: the cause, what to do, and the evidence. */
export function Report(props: Report.IProps): React.JSX.Element {
  const { report, api, copy, onExport, onForget, onSeeAll, trans } = props;
  return (
    <article className="jp-TfGuard-Report" data-report-id={report.id}>
      <div className="jp-TfGuard-quiet jp-TfGuard-small">{origin(report, trans)}</div>
      <h2>{report.title}</h2>
      <Chips report={report} trans={trans} />
      {typeof report.unsaved === 'string' && <Notice kind="warning" text={report.unsaved} />}
      <div className="jp-TfGuard-columns">
        <Boundary>
          <AdviceList advice={report.advice} copy={copy} trans={trans} />
        </Boundary>
        <Boundary>
          <Activity activity={report.activity} trans={trans} />
        </Boundary>
      </div>
      <Boundary>
        {report.memory !== null && (
          <CrashChart memory={report.memory} isAlive={report.kernel_alive} trans={trans} />
        )}
      </Boundary>
      <Boundary>
        <Section name="Evidence" title={trans.__('How we know')}>
          <EvidenceList facts={report.evidence} empty={trans.__('Nothing was recorded.')} />
        </Section>
      </Boundary>
      <div className="jp-TfGuard-columns">
        <Boundary>
          <Section name="Against" title={trans.__('Evidence against it')}>
            <EvidenceList facts={report.against} empty={trans.__('Nothing found.')} />
          </Section>
        </Boundary>
        <Boundary>
          <NotChecked texts={report.not_checked} trans={trans} />
        </Boundary>
      </div>
      <Boundary>
        <OtherFindings findings={report.other_findings} trans={trans} />
      </Boundary>
      <Boundary>
        <Saved left={report.left} copy={copy} trans={trans} />
      </Boundary>
      <Boundary>
        <Arrays arrays={report.arrays} trans={trans} />
      </Boundary>
      <Boundary>
        <Lines name="Native" title={trans.__('Last lines of stderr')} lines={report.stderr_tail} />
        <Lines name="Stack" title={trans.__('Python stack trace')} lines={report.python_stack} />
      </Boundary>
      {report.same_before_count !== null && report.same_before_count > 0 && (
        <div className="jp-TfGuard-quiet">
          {trans._n(
            'One earlier crash with the same cause in this notebook within a day.',
            '%1 earlier crashes with the same cause in this notebook within a day.',
            report.same_before_count
          )}{' '}
          <button type="button" className="jp-TfGuard-link" onClick={onSeeAll}>
            {trans.__('Show past crashes')}
          </button>
        </div>
      )}
      <footer className="jp-TfGuard-row">
        <span className="jp-TfGuard-quiet jp-TfGuard-small">{versionsText(report)}</span>
        <span className="jp-TfGuard-buttons">
          <CopyButton
            copy={copy}
            label={trans.__('Copy as Markdown')}
            text={() => api.markdown(report.id)}
          />
          <button type="button" className="jp-TfGuard-button" onClick={onExport}>
            {trans.__('Export…')}
          </button>
          <button type="button" className="jp-TfGuard-button" onClick={onForget}>
            {trans.__('Delete…')}
          </button>
        </span>
      </footer>
    </article>
  );
}

export namespace Report {
  export interface IProps {
    readonly report: ReportData;
    readonly copy: CodeBlock.ICopy;
    readonly api: IApi;
    /** Save a file to share. */
    readonly onExport: () => void;
    /** Delete the report, after confirmation. */
    readonly onForget: () => void;
    /** Show the list of all crashes. */
    readonly onSeeAll: () => void;
    readonly trans: Trans;
  }

  /** The requests of a report. */
  export type IApi = Pick<GuardApi, 'markdown'>;
}

function origin(report: ReportData, trans: Trans): string {
  return [
    trans.__('Crash report'),
    ...(report.notebook_path === null ? [] : [fileName(report.notebook_path)]),
    fullTime(report.crashed_at),
    ...(report.kernel_name === null ? [] : [report.kernel_name])
  ].join(' · ');
}

function Chips({ report, trans }: { report: ReportData; trans: Trans }): React.JSX.Element {
  return (
    <ul className="jp-TfGuard-chips">
      <li className={`jp-TfGuard-chip jp-mod-${report.confidence}`}>
        {confidenceWord(report.confidence, trans)}
      </li>
      {report.kernel_alive && (
        <li className="jp-TfGuard-chip">{trans.__('the kernel is still running')}</li>
      )}
      {report.chips.map((chip, index) => (
        <li key={index} className="jp-TfGuard-chip">
          {chip}
        </li>
      ))}
    </ul>
  );
}

function Activity(props: { activity: ReportData['activity']; trans: Trans }): React.JSX.Element {
  const { activity, trans } = props;
  return (
    <Section name="Activity" title={trans.__('What you were doing')}>
      {activity.length === 0 ? (
        <div className="jp-TfGuard-quiet">{trans.__('Nothing was recorded.')}</div>
      ) : (
        <dl className="jp-TfGuard-facts">
          {activity.map(({ label, value, code }, index) => (
            <React.Fragment key={index}>
              <dt>{label}</dt>
              <dd>{code ? <code>{value}</code> : value}</dd>
            </React.Fragment>
          ))}
        </dl>
      )}
    </Section>
  );
}

function NotChecked({ texts, trans }: { texts: string[]; trans: Trans }): React.JSX.Element {
  return (
    <Section name="NotChecked" title={trans.__('Not checked')}>
      {texts.length === 0 ? (
        <div className="jp-TfGuard-quiet">{trans.__('Everything relevant was checked.')}</div>
      ) : (
        <ul className="jp-TfGuard-list jp-TfGuard-quiet">
          {texts.map((text, index) => (
            <li key={index}>{text}</li>
          ))}
        </ul>
      )}
    </Section>
  );
}

function OtherFindings(props: {
  findings: ReportData['other_findings'];
  trans: Trans;
}): React.JSX.Element | null {
  const { findings, trans } = props;
  if (findings.length === 0) {
    return null;
  }
  return (
    <Section name="OtherFindings" title={trans.__('Other findings')}>
      <ul className="jp-TfGuard-list">
        {findings.map((finding, index) => (
          <li key={index}>
            {finding.title}{' '}
            <span className="jp-TfGuard-quiet">({confidenceWord(finding.confidence, trans)})</span>
            {finding.evidence !== null && <EvidenceList facts={finding.evidence} empty="" />}
            {finding.advice !== null && finding.advice.length > 0 && (
              <div>
                <b>{finding.advice[0].title}</b> {finding.advice[0].text}
              </div>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function versionsText(report: ReportData): string {
  return Object.entries(report.versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(' · ');
}
