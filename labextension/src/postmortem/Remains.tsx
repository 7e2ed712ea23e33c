import * as React from 'react';

import { CodeBlock } from '../parts/CodeBlock';
import { Notice } from '../parts/Notice';
import { Section } from '../parts/Section';
import { humanBytes, humanMetric } from '../units';
import { fullTime } from '../when';
import type { Report } from '../wire';
import type { Trans } from '../trans';

/** Metrics by epoch and the last checkpoint. Nothing if there are none. */
export function Saved(props: Saved.IProps): React.JSX.Element | null {
  const { metrics, checkpoint } = props.left;
  const { copy, trans } = props;
  if (metrics === null && checkpoint === null) {
    return null;
  }
  return (
    <Section name="Left" title={trans.__('Checkpoint and metrics')}>
      {checkpoint !== null && (
        <div>
          {trans.__('Last checkpoint:')} <code>{checkpoint.path}</code>
          {checkpoint.written_at !== null && (
            <span className="jp-TfGuard-quiet"> · {fullTime(checkpoint.written_at)}</span>
          )}
          {checkpoint.doubt !== null && <Notice kind="warning" text={checkpoint.doubt} />}
          {checkpoint.resume_code !== null && (
            <React.Fragment>
              <div>{trans.__('To resume from it:')}</div>
              <CodeBlock code={checkpoint.resume_code} copy={copy} />
            </React.Fragment>
          )}
        </div>
      )}
      {metrics !== null && (
        <table className="jp-TfGuard-table">
          <thead>
            <tr>
              {metrics.columns.map((column, index) => (
                <th key={index} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {metrics.rows.map((row, index) => (
              <tr key={index}>
                {row.map((value, column) => (
                  <td key={column}>{humanMetric(value)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Section>
  );
}

export namespace Saved {
  export interface IProps {
    readonly left: Report['left'];
    readonly copy: CodeBlock.ICopy;
    readonly trans: Trans;
  }
}

/** The largest arrays at the end of the last cell. */
export function Arrays(props: Arrays.IProps): React.JSX.Element | null {
  const { arrays, trans } = props;
  if (arrays.length === 0) {
    return null;
  }
  return (
    <Section name="Arrays" title={trans.__('Largest arrays')}>
      <table className="jp-TfGuard-table">
        <tbody>
          {arrays.map(({ name, bytes }, index) => (
            <tr key={index}>
              <th scope="row">
                <code>{name}</code>
              </th>
              <td>{humanBytes(bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

export namespace Arrays {
  export interface IProps {
    readonly arrays: Report['arrays'];
    readonly trans: Trans;
  }
}

/** Unchanged lines of text. */
export function Lines(props: Lines.IProps): React.JSX.Element | null {
  const { name, title, lines } = props;
  if (lines.length === 0) {
    return null;
  }
  return (
    <Section name={name} title={title}>
      <pre className="jp-TfGuard-lines" tabIndex={0}>
        {lines.join('\n')}
      </pre>
    </Section>
  );
}

export namespace Lines {
  export interface IProps {
    readonly name: string;
    readonly title: string;
    readonly lines: readonly string[];
  }
}
