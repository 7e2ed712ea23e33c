import * as React from 'react';

import { bytesOfLimit, humanBytes } from '../../units';
import type { GpuDevice, TensorFlowMemory } from '../../wire';
import type { Trans } from '../../trans';

import { unseenShare } from './holders';
import type { IShare } from './holders';

/** Hidden from screen readers: the rows below have the same content. Nothing if size or use is unknown. */
export function Bar(props: Bar.IProps): React.JSX.Element | null {
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

export namespace Bar {
  export interface IProps {
    readonly device: GpuDevice;
    readonly shares: readonly IShare[];
  }
}

/** One row per holder; a notebook of this server is a link. */
export function Shares(props: Shares.IProps): React.JSX.Element {
  const { onOpenNotebook, tensors, trans } = props;
  const isSeen = props.shares.some(share => share.kind === 'this');
  const shares = isSeen || tensors === null ? props.shares : [unseenShare(trans), ...props.shares];
  return (
    <ul className="jp-TfGuard-list">
      {shares.map(share => (
        <li key={share.key} className="jp-TfGuard-small">
          <div className={`jp-TfGuard-row jp-mod-${share.kind}`}>
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

export namespace Shares {
  export interface IProps {
    readonly shares: readonly IShare[];
    /** Values of TensorFlow in this kernel for the GPU. */
    readonly tensors: TensorFlowMemory | null;
    readonly onOpenNotebook: (path: string) => void;
    readonly trans: Trans;
  }
}

/** The part without its unit if the whole has the same unit. */
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

/** Peak and limit of TensorFlow's allocator, if known. */
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
