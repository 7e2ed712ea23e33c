import * as React from 'react';

import { Section } from '../parts/Section';
import { fileName } from '../units';
import { dayAndTime } from '../when';
import type { CrashEntry, Group } from '../wire';
import type { Trans } from '../words';

const SHOWN_AT_FIRST = 8;

/** Kernels that died, newest first; those whose report nobody opened stand out. */
export function PastDeaths(props: PastDeaths.IProps): React.JSX.Element {
  const { crashes, now, onOpen, trans } = props;
  const [isLong, setLong] = React.useState(false);
  const shown = isLong ? crashes : crashes.slice(0, SHOWN_AT_FIRST);
  const hidden = crashes.length - shown.length;
  return (
    <Section name="Deaths" title={trans.__('Past deaths')}>
      {crashes.length === 0 && (
        <div className="jp-TfGuard-quiet">{trans.__('Guarding. Nothing has died yet.')}</div>
      )}
      <ul className="jp-TfGuard-list">
        {shown.map(entry => (
          <li key={entry.id}>
            <button
              type="button"
              className={`jp-TfGuard-Death${entry.unread ? ' jp-mod-unread' : ''}`}
              data-report-id={entry.id}
              title={entry.title}
              onClick={() => onOpen(entry.id)}
            >
              <span className="jp-TfGuard-row">
                <span className="jp-TfGuard-Death-title">
                  {entry.short_title}
                  {entry.group !== null && (
                    <span className="jp-TfGuard-hidden">{trans.__(', counted together')}</span>
                  )}
                  {entry.unread && (
                    <span className="jp-TfGuard-hidden">{trans.__(', not read yet')}</span>
                  )}
                </span>
                <span className="jp-TfGuard-quiet jp-TfGuard-small">
                  {dayAndTime(entry.died_at, now, trans)}
                </span>
              </span>
              <span className="jp-TfGuard-quiet jp-TfGuard-small jp-TfGuard-name">
                {placeOf(entry, now, trans)}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {hidden > 0 && (
        <button type="button" className="jp-TfGuard-link" onClick={() => setLong(true)}>
          {trans.__('Show %1 more', hidden)}
        </button>
      )}
    </Section>
  );
}

export namespace PastDeaths {
  export interface IProps {
    readonly crashes: readonly CrashEntry[];
    /** Unix seconds, to tell today from yesterday. */
    readonly now: number;
    readonly onOpen: (id: string) => void;
    readonly trans: Trans;
  }
}

function placeOf(entry: CrashEntry, now: number, trans: Trans): string {
  const { group } = entry;
  return [
    ...(entry.notebook_path === null ? [] : [fileName(entry.notebook_path)]),
    ...(group === null || group.one_kernel ? [] : [kernelsOf(group, trans)]),
    ...(entry.where === null || group !== null ? [] : [entry.where]),
    ...(group === null ? [] : [trans.__('since %1', dayAndTime(group.first_at, now, trans))]),
    ...(entry.kernel_alive ? [trans.__('the kernel lives on')] : [])
  ].join(' · ');
}

function kernelsOf(group: Group, trans: Trans): string {
  return group.kernels_count_is_exact
    ? trans._n('%1 kernel', '%1 kernels', group.kernels_count)
    : trans.__('at least %1 kernels', group.kernels_count);
}
