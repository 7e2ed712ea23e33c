import * as React from 'react';

import { known } from '../chart/span';
import { humanBytes } from '../units';
import { clock } from '../when';
import type { Report, TimelineEvent } from '../wire';
import type { Trans } from '../words';

/** Samples between the events; all of them would be no table to read. */
const ROWS = 16;

/** What the charts show, in numbers: some samples, and every event. */
export function TimelineTable(props: TimelineTable.IProps): React.JSX.Element {
  const { memory, events, trans } = props;
  const { samples, curves } = memory;
  const columns = [{ title: trans.__('This kernel'), samples }, ...(curves ?? [])];
  const step = Math.ceil(samples.length / ROWS);
  const rows = [
    ...samples
      .filter((_, index) => index % step === 0 || index === samples.length - 1)
      .map(([time]) => ({ time, label: '' })),
    ...events
  ].sort((one, other) => one.time - other.time);
  return (
    <details className="jp-TfGuard-TimelineTable">
      <summary>{trans.__('The same as a table')}</summary>
      <table className="jp-TfGuard-table">
        <caption className="jp-TfGuard-hidden">
          {trans.__('Memory and events up to the end')}
        </caption>
        <thead>
          <tr>
            {[trans.__('Time'), ...columns.map(({ title }) => title), trans.__('Event')].map(
              (title, index) => (
                <th key={index} scope="col">
                  {title}
                </th>
              )
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ time, label }, index) => (
            <tr key={index}>
              <th scope="row">{clock(time)}</th>
              {columns.map((column, place) => (
                <td key={place}>{humanBytes(valueAt(column.samples, time))}</td>
              ))}
              <td>{label}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

export namespace TimelineTable {
  export interface IProps {
    readonly memory: NonNullable<Report['memory']>;
    readonly events: readonly TimelineEvent[];
    readonly trans: Trans;
  }
}

/** The newest sample until then. */
function valueAt(samples: readonly [number, number | null][], time: number): number | null {
  const after = samples.findIndex(sample => sample[0] > time);
  const values = samples.map(([, value]) => value);
  return known(values, (after < 0 ? values.length : after) - 1);
}
