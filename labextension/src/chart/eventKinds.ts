/** Signs and heights of event kinds on the axis, so that color is not the only difference. */

export interface IEventKind {
  /** Drawn on the tick; empty for a plain tick. */
  readonly sign: string;
  /** Problems and checkpoints are drawn higher than other events. */
  readonly isHigh: boolean;
  readonly isBad: boolean;
  /** Labels with a higher rank are placed first. */
  readonly rank: number;
}

const PLAIN: IEventKind = { sign: '', isHigh: false, isBad: false, rank: 1 };

const KINDS = new Map<string | undefined, IEventKind>([
  ['fit', { sign: '▸', isHigh: false, isBad: false, rank: 2 }],
  ['epoch', { sign: '·', isHigh: false, isBad: false, rank: 0 }],
  ['checkpoint', { sign: '◆', isHigh: true, isBad: false, rank: 1 }],
  ['warning', { sign: '▲', isHigh: true, isBad: true, rank: 3 }],
  ['gpu_oom', { sign: '✕', isHigh: true, isBad: true, rank: 3 }],
  ['leak', { sign: '▲', isHigh: true, isBad: true, rank: 3 }],
  ['memory_stop', { sign: '▼', isHigh: true, isBad: true, rank: 3 }],
  ['hang', { sign: '■', isHigh: true, isBad: true, rank: 3 }]
]);

/** Cells and unknown kinds are plain ticks. */
export function eventKind(name: string | undefined): IEventKind {
  return KINDS.get(name) ?? PLAIN;
}
