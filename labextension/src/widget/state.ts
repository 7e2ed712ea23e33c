/** What the kernel sends to the panel in a notebook: the counterpart of `kernel/panel_state.py`. Samples in `tests/wire/widget.json`. */
import { flag, listOf, number, orNull, shape, text, tuple } from '../check';
import type { Checked } from '../check';
import { guard, host, mark, training } from '../wire';

/** An allocator of TensorFlow's: the kernel itself sees no more of a GPU. */
const gpu = shape({
  device: text,
  in_use_bytes: orNull(number),
  peak_bytes: orNull(number),
  limit_bytes: orNull(number)
});

const panelState = shape({
  time: number,
  notebook: orNull(text),
  busy: flag,
  host,
  training: orNull(training),
  marks: listOf(mark),
  gpu: listOf(gpu),
  guard
});

const rows = listOf(tuple(number, orNull(number)));

export type PanelState = Checked<typeof panelState>;
export type Allocator = PanelState['gpu'][number];
export type Rows = Checked<typeof rows>;

/** One message of the kernel. `other` is a kind that a newer kernel sends; it is passed over. */
export type News =
  | { readonly type: 'state'; readonly state: PanelState }
  | { readonly type: 'history'; readonly rows: Rows }
  | { readonly type: 'ended' }
  | { readonly type: 'other' };

export function readState(value: unknown): PanelState {
  return panelState(value, 'state');
}

export function readRows(value: unknown): Rows {
  return rows(value, 'history');
}

/** @throws ShapeError - it has another shape. */
export function readNews(value: unknown): News {
  switch (shape({ type: text })(value, 'message').type) {
    case 'state':
      return { type: 'state', ...shape({ state: panelState })(value, 'message') };
    case 'history':
      return { type: 'history', ...shape({ rows })(value, 'message') };
    case 'ended':
      return { type: 'ended' };
    default:
      return { type: 'other' };
  }
}
