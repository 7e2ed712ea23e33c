/** Who holds the memory of a GPU, for the rows and the bar. */
import { humanBytes, shortFileName } from '../../units';
import type { GpuDevice, GpuHolder, TensorFlowMemory } from '../../wire';
import type { Trans } from '../../trans';

import { sumOf } from './cards';

/** Above this number of rows, the smallest are merged. */
const ROWS_LIMIT = 5;

export interface IShare {
  readonly key: string;
  /** Decides the colour. */
  readonly kind: 'this' | 'notebook' | 'process' | 'rest';
  readonly label: string;
  /** The name without prefix, for short lines. */
  readonly short: string;
  /** The label with full path and process IDs. */
  readonly title: string;
  /** Path of a notebook of this server, for the link. */
  readonly path: string | null;
  readonly bytes: number | null;
}

/** This kernel, other notebooks, other processes, and the rest; unknown amounts stay null. */
export function sharesOf(device: GpuDevice, trans: Trans): IShare[] {
  const { holders } = device;
  if (device.lost || holders === null) {
    return [];
  }
  const groups = [...groupsOf(holders)].map(([key, members]) => shareOf(key, members, trans));
  const own = groups.filter(share => share.kind === 'this');
  const others = groups.filter(share => share.kind !== 'this');
  const rest = restOf(device, groups, trans);
  return [...own, ...fold(others, ROWS_LIMIT - own.length, trans), ...rest];
}

/** Processes grouped by kernel, largest first. */
function groupsOf(holders: readonly GpuHolder[]): Map<string, GpuHolder[]> {
  const groups = new Map<string, GpuHolder[]>();
  holders.forEach((holder, index) => {
    const key = holder.is_this
      ? 'this'
      : (holder.kernel_id ?? `process ${holder.pid ?? `at ${index}`}`);
    groups.set(key, [...(groups.get(key) ?? []), holder]);
  });
  return groups;
}

function shareOf(key: string, members: readonly GpuHolder[], trans: Trans): IShare {
  const bytes = sumOf(members);
  const first = members[0];
  const path = members.find(member => member.notebook_path !== null)?.notebook_path ?? null;
  const pids = members.flatMap(member => (member.pid === null ? [] : [member.pid]));
  const processes =
    pids.length === 0
      ? ''
      : ` (${trans._n('process %2', 'processes %2', pids.length, pids.join(', '))})`;
  if (first === undefined || first.is_this) {
    const share = plain(key, 'this', trans.__('this kernel'), bytes);
    return { ...share, title: `${share.label}${processes}` };
  }
  if (path !== null) {
    const name = shortFileName(path);
    return {
      ...plain(key, 'notebook', trans.__('held by %1', name), bytes),
      short: name,
      title: `${trans.__('held by %1', path)}${processes}`,
      path: isHere(path) ? path : null
    };
  }
  if (first.kernel_id !== null) {
    const share = plain(key, 'notebook', trans.__('kernel without a notebook'), bytes);
    return { ...share, title: `${share.label}${processes}` };
  }
  const label = processLabel(first, trans);
  return { ...plain(key, 'process', label, bytes), short: first.name ?? label };
}

function plain(key: string, kind: IShare['kind'], label: string, bytes: number | null): IShare {
  return { key, kind, label, short: label, title: label, path: null, bytes };
}

/** Whether Jupyter can open the path. A kernel without a session has an absolute path. */
function isHere(path: string): boolean {
  return !/^([/\\]|[A-Za-z]:[/\\])/.test(path);
}

function processLabel({ name, pid }: GpuHolder, trans: Trans): string {
  if (pid === null) {
    return name ?? trans.__('a process');
  }
  return name === null ? trans.__('process %1', pid) : trans.__('process %1 · %2', pid, name);
}

function fold(shares: readonly IShare[], limit: number, trans: Trans): IShare[] {
  if (shares.length <= limit) {
    return [...shares];
  }
  const kept = shares.slice(0, limit - 1);
  const small = shares.slice(limit - 1);
  const bytes = small.reduce<number | null>(
    (sum, share) => (sum === null || share.bytes === null ? null : sum + share.bytes),
    0
  );
  const title = small.map(share => `${share.title}: ${humanBytes(share.bytes)}`).join('\n');
  const label = trans.__('%1 more', small.length);
  return [...kept, { ...plain('more', 'process', label, bytes), title }];
}

/** Memory that no known holder uses. If the amount of a holder is unknown, the label says so. */
function restOf(device: GpuDevice, shares: readonly IShare[], trans: Trans): IShare[] {
  const { memory_used_bytes: used, other_bytes: other } = device;
  const known = shares.reduce((sum, share) => sum + (share.bytes ?? 0), 0);
  const bytes = other ?? (used === null ? null : used - known);
  if (bytes === null || bytes <= 0) {
    return [];
  }
  const label =
    other === null ? trans.__('in use, holder unknown') : trans.__('driver, display, hidden');
  return [plain('rest', 'rest', label, bytes)];
}

/** This kernel with an unknown amount: TensorFlow uses the GPU, but the driver shows no process. */
export function unseenShare(trans: Trans): IShare {
  return plain('this', 'this', trans.__('this kernel'), null);
}

/**
 * TensorFlow's allocator values for a GPU; null if unknown.
 *
 * TensorFlow numbers the GPUs that it sees. If the server could not match the number, the only device must be the
 * only GPU.
 */
export function tensorsOn(
  device: GpuDevice,
  inside: readonly TensorFlowMemory[],
  isOnlyCard: boolean
): TensorFlowMemory | null {
  const found = inside.find(memory => memory.gpu_uuid === device.gpu_uuid);
  const only = inside.length === 1 && isOnlyCard ? inside[0] : undefined;
  return found ?? (only?.gpu_uuid === null ? only : null);
}
