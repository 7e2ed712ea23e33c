import * as React from 'react';

import { Notice } from '../../parts/Notice';
import { bytesOfLimit, humanBytes, humanPercent, tickBytes, UNKNOWN } from '../../units';
import { dayAndTime } from '../../when';
import type { GpuAlarm, GpuDevice, TensorFlowMemory } from '../../wire';
import type { Trans } from '../../words';

import type { ICard } from './cards';
import { sharesOf, unseenShare } from './shares';
import type { IShare } from './shares';

/** `GPU 0`, `GPU 0 · MIG 1`. */
export function titleOf({ nvml_index, mig_index }: GpuDevice, trans: Trans): string {
  return mig_index === null
    ? trans.__('GPU %1', nvml_index)
    : trans.__('GPU %1 · MIG %2', nvml_index, mig_index);
}

/** `A100-SXM4, 40 GiB`, `1g.10gb, 9.8 GiB`: without the maker, and the size said once. */
export function modelOf({ name, memory_total_bytes: total }: GpuDevice): string {
  const model = name
    .replace(/^.* MIG (?=\d)/, '')
    .replace(/^NVIDIA /, '')
    .replace(/-\d+GB$/, '');
  return total === null ? model : `${model}, ${tickBytes(total)}`;
}

/** `27.9 of 40.0 GiB`, or a dash for what is not known. */
export function usedText(device: GpuDevice, trans: Trans): string {
  const { memory_used_bytes, memory_total_bytes: total } = device;
  const used = device.lost ? null : memory_used_bytes;
  return total === null ? humanBytes(used) : trans.__('%1 of %2', ...bytesOfLimit(used, total));
}

/** One card without its title: alarms, a bar with who holds what, and how busy and warm it is. */
export function GpuCard(props: GpuCard.IProps): React.JSX.Element {
  const { card, tensors, now, onOpenNotebook, trans } = props;
  const { device, instancesCount } = card;
  const facts = factsOf(device, trans);
  const shares = sharesOf(device, trans);
  return (
    <>
      <Alarms device={device} now={now} trans={trans} />
      {instancesCount === null ? (
        <>
          <Bar device={device} shares={shares} />
          <div className="jp-TfGuard-row jp-TfGuard-small">
            <span>{trans.__('in use')}</span>
            <span>{usedText(device, trans)}</span>
          </div>
          <Shares
            shares={shares}
            tensors={device.lost ? null : tensors}
            onOpenNotebook={onOpenNotebook}
            trans={trans}
          />
        </>
      ) : (
        <div className="jp-TfGuard-quiet jp-TfGuard-small">
          {trans._n('split into %1 MIG instance', 'split into %1 MIG instances', instancesCount)}
        </div>
      )}
      {device.note !== null && !device.lost && (
        <div className="jp-TfGuard-quiet jp-TfGuard-small">{device.note}</div>
      )}
      {facts !== '' && <div className="jp-TfGuard-quiet jp-TfGuard-small">{facts}</div>}
    </>
  );
}

export namespace GpuCard {
  export interface IProps {
    readonly card: ICard;
    /** What TensorFlow in this kernel says of the card. */
    readonly tensors: TensorFlowMemory | null;
    /** Unix seconds. */
    readonly now: number;
    readonly onOpenNotebook: (path: string) => void;
    readonly trans: Trans;
  }
}

/** What is wrong with the card. A lost one has something to say in any case. */
function Alarms(props: {
  readonly device: GpuDevice;
  readonly now: number;
  readonly trans: Trans;
}): React.JSX.Element {
  const { device, now, trans } = props;
  const isTold = device.alarms.some(alarm => alarm.severity === 'error');
  return (
    <>
      {device.lost && !isTold && (
        <Notice
          kind="error"
          text={trans.__(
            '%1 is lost: its driver cannot reach it any more.',
            titleOf(device, trans)
          )}
          fix={trans.__(
            'Kernels that used it must be restarted. Often the machine needs a restart too.'
          )}
        />
      )}
      {device.alarms.map(alarm => (
        <Notice
          key={`${alarm.text} ${alarm.since}`}
          kind={alarm.severity}
          text={alarm.text}
          fix={alarm.fix}
        >
          {alarm.since !== null && (
            <div className="jp-TfGuard-quiet">{sinceText(alarm.since, now, trans)}</div>
          )}
        </Notice>
      ))}
    </>
  );
}

function sinceText(since: NonNullable<GpuAlarm['since']>, now: number, trans: Trans): string {
  return trans.__('since %1', dayAndTime(new Date(since * 1000).toISOString(), now, trans));
}

/** For eyes only: the rows below say the same. Nothing where the size or the use is not known. */
function Bar(props: {
  readonly device: GpuDevice;
  readonly shares: readonly IShare[];
}): React.JSX.Element | null {
  const { device, shares } = props;
  const { memory_total_bytes: total, memory_used_bytes: used } = device;
  if (device.lost || total === null || total <= 0 || used === null) {
    return null;
  }
  const known = shares.filter(share => (share.bytes ?? 0) > 0);
  const pieces =
    known.length > 0 ? known : [{ key: 'all', kind: 'rest', bytes: Math.max(0, used) } as const];
  return (
    <div className="jp-TfGuard-bar jp-mod-shares" aria-hidden="true">
      {pieces.map(({ key, kind, bytes }) => (
        <i
          key={key}
          className={`jp-mod-${kind}`}
          style={{ width: `${Math.min(100, ((bytes ?? 0) / total) * 100)}%` }}
        />
      ))}
    </div>
  );
}

function Shares(props: {
  readonly shares: readonly IShare[];
  readonly tensors: TensorFlowMemory | null;
  readonly onOpenNotebook: (path: string) => void;
  readonly trans: Trans;
}): React.JSX.Element {
  const { onOpenNotebook, tensors, trans } = props;
  const isSeen = props.shares.some(share => share.kind === 'this');
  const shares = isSeen || tensors === null ? props.shares : [unseenShare(trans), ...props.shares];
  return (
    <ul className="jp-TfGuard-list">
      {shares.map(share => (
        <li key={share.key} className="jp-TfGuard-small">
          <div className="jp-TfGuard-row">
            <span className="jp-TfGuard-holder" title={share.title}>
              <i className={`jp-TfGuard-square jp-mod-${share.kind}`} aria-hidden="true" />
              <Name share={share} onOpenNotebook={onOpenNotebook} />
            </span>
            <span>
              {humanBytes(share.bytes)}
              {share.kind === 'this' && typeof tensors?.in_use_bytes === 'number' && (
                <span className="jp-TfGuard-quiet">
                  {` (${trans.__('%1 in tensors', inside(tensors.in_use_bytes, share.bytes))})`}
                </span>
              )}
            </span>
          </div>
          {share.kind === 'this' && tensors !== null && <Tensors tensors={tensors} trans={trans} />}
        </li>
      ))}
    </ul>
  );
}

/** The part without its unit where the whole has the same. */
function inside(part: number, whole: number | null): string {
  return whole === null ? humanBytes(part) : bytesOfLimit(part, whole)[0];
}

function Name(props: {
  readonly share: IShare;
  readonly onOpenNotebook: (path: string) => void;
}): React.JSX.Element {
  const { label, path } = props.share;
  return path === null ? (
    <span className="jp-TfGuard-name">{label}</span>
  ) : (
    <button
      type="button"
      className="jp-TfGuard-link jp-TfGuard-name"
      onClick={() => props.onOpenNotebook(path)}
    >
      {label}
    </button>
  );
}

/** Peak and limit of TensorFlow's allocator, where they are known. */
function Tensors(props: {
  readonly tensors: TensorFlowMemory;
  readonly trans: Trans;
}): React.JSX.Element | null {
  const { tensors, trans } = props;
  const text = tensorsText(tensors, trans);
  return text === null ? null : <div className="jp-TfGuard-quiet jp-TfGuard-under">{text}</div>;
}

function tensorsText({ peak_bytes, limit_bytes }: TensorFlowMemory, trans: Trans): string | null {
  if (limit_bytes === null) {
    return peak_bytes === null ? null : trans.__('tensors: peak %1', humanBytes(peak_bytes));
  }
  return peak_bytes === null
    ? trans.__('tensors: limit %1', humanBytes(limit_bytes))
    : trans.__('tensors: peak %1, limit %2', ...bytesOfLimit(peak_bytes, limit_bytes));
}

/** `71 °C · 288 of 400 W · 83 % busy`; what is not known is left out, a lost card's are dashes. */
function factsOf(device: GpuDevice, trans: Trans): string {
  const { temperature_celsius, power_limit_watts, power_watts, utilization_fraction } = device;
  if (device.lost && device.mig_index === null) {
    return `${UNKNOWN} °C · ${UNKNOWN} W · ${trans.__('%1 busy', UNKNOWN)}`;
  }
  return [
    ...(temperature_celsius === null ? [] : [`${Math.round(temperature_celsius)} °C`]),
    ...(power_watts === null ? [] : [powerText(power_watts, power_limit_watts, trans)]),
    ...(utilization_fraction === null
      ? []
      : [trans.__('%1 busy', humanPercent(utilization_fraction))])
  ].join(' · ');
}

function powerText(watts: number, limit: number | null, trans: Trans): string {
  return limit === null
    ? trans.__('%1 W', Math.round(watts))
    : trans.__('%1 of %2 W', Math.round(watts), Math.round(limit));
}
