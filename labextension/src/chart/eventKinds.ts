/** How kinds of events are told apart on the axis: by a sign and by height, not by colour alone. */

export interface IEventKind {
  /** Stands on the tick; empty for a bare tick. */
  readonly sign: string;
  /** What went wrong or was kept stands above what merely happened. */
  readonly isHigh: boolean;
  readonly isBad: boolean;
  /** Where room is short, the highest is named first. */
  readonly rank: number;
}

const PLAIN: IEventKind = { sign: '', isHigh: false, isBad: false, rank: 1 };

const KINDS = new Map<string | undefined, IEventKind>([
  ['fit', { sign: '▸', isHigh: false, isBad: false, rank: 2 }],
  ['epoch', { sign: '·', isHigh: false, isBad: false, rank: 0 }],
  ['checkpoint', { sign: '◆', isHigh: true, isBad: false, rank: 1 }],
  ['warning', { sign: '▲', isHigh: true, isBad: true, rank: 3 }],
  ['gpu_oom', { sign: '✕', isHigh: true, isBad: true, rank: 3 }],
  ['hang', { sign: '■', isHigh: true, isBad: true, rank: 3 }]
]);

/** Cells, and a kind that a newer server tells of, are bare ticks. */
export function eventKind(name: string | undefined): IEventKind {
  return KINDS.get(name) ?? PLAIN;
}
