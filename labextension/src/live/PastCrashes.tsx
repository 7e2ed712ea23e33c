import * as React from 'react';

import { Section } from '../parts/Section';
import { shortFileName } from '../units';
import { dayAndTime, parseStamp } from '../when';
import type { CrashEntry } from '../wire';
import type { Trans } from '../trans';

const SHOWN_AT_FIRST = 8;

/** One row of the list: a crash with earlier similar crashes, newest first. */
interface ICrashRow {
  readonly entry: CrashEntry;
  readonly others: readonly CrashEntry[];
}

/** Past crashes, newest first. Unread reports are highlighted. */
export function PastCrashes(props: PastCrashes.IProps): React.JSX.Element {
  const { crashes, trans } = props;
  const [isLong, setLong] = React.useState(false);
  const rows = crashes
    .filter(({ same_as }) => !same_as)
    .map(entry => ({ entry, others: crashes.filter(({ same_as }) => same_as === entry.id) }));
  const shown = isLong ? rows : rows.slice(0, SHOWN_AT_FIRST);
  const hidden = rows.length - shown.length;
  return (
    <Section name="Crashes" title={trans.__('Past crashes')}>
      {crashes.length === 0 && (
        <div className="jp-TfGuard-quiet">{trans.__('No crashes yet.')}</div>
      )}
      <ul className="jp-TfGuard-list">
        {shown.map(row => (
          <li key={row.entry.id}>
            <Crash {...props} entry={row.entry} title={titleOf(row, trans)} />
            {row.others.length > 0 && <Others {...props} row={row} />}
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

/** Reports of similar crashes, collapsed at first. */
function Others(props: PastCrashes.IProps & { row: ICrashRow }): React.JSX.Element {
  const { row, trans } = props;
  const [isOpen, setOpen] = React.useState(false);
  const { length } = row.others;
  return (
    <div className="jp-TfGuard-SameCrashes">
      <button
        type="button"
        className="jp-TfGuard-link"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        {isOpen
          ? trans.__('Show fewer')
          : trans._n('Show %1 similar report', 'Show %1 similar reports', length)}
      </button>
      {isOpen && (
        <ul className="jp-TfGuard-list">
          {row.others.map(entry => (
            <li key={entry.id}>
              <Crash {...props} entry={entry} title={entry.short_title} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Crash(
  props: PastCrashes.IProps & { entry: CrashEntry; title: string }
): React.JSX.Element {
  const { entry, now, onOpen, title, trans } = props;
  return (
    <button
      type="button"
      className={`jp-TfGuard-Crash${entry.unread ? ' jp-mod-unread' : ''}`}
      data-report-id={entry.id}
      title={entry.title}
      onClick={() => onOpen(entry.id)}
    >
      <span className="jp-TfGuard-row">
        <span className="jp-TfGuard-Crash-title">
          {title}
          {entry.unread && <span className="jp-TfGuard-hidden">{trans.__(', unread')}</span>}
        </span>
        <span className="jp-TfGuard-quiet jp-TfGuard-small">
          {dayAndTime(parseStamp(entry.crashed_at), now, trans)}
        </span>
      </span>
      <span className="jp-TfGuard-quiet jp-TfGuard-small jp-TfGuard-name">
        {placeOf(entry, trans)}
      </span>
    </button>
  );
}

export namespace PastCrashes {
  export interface IProps {
    readonly crashes: readonly CrashEntry[];
    /** Unix seconds. */
    readonly now: number;
    readonly onOpen: (id: string) => void;
    readonly trans: Trans;
  }
}

function titleOf({ entry, others }: ICrashRow, trans: Trans): string {
  return others.length === 0
    ? entry.short_title
    : trans.__('%1 × %2', others.length + 1, entry.short_title);
}

function placeOf(entry: CrashEntry, trans: Trans): string {
  return [
    ...(entry.notebook_path === null ? [] : [shortFileName(entry.notebook_path)]),
    ...(entry.where === null ? [] : [entry.where]),
    ...(entry.kernel_alive ? [trans.__('still running')] : []),
    ...(typeof entry.unsaved === 'string' ? [trans.__('not saved')] : [])
  ].join(' · ');
}
