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

/** `hertz`: messages a second, 0 while paused; null in news, which do not tell. */
const panelState = shape({
  time: number,
  kernel_id: orNull(text),
  notebook: orNull(text),
  busy: flag,
  host,
  training: orNull(training),
  marks: listOf(mark),
  gpu: listOf(gpu),
  guard,
  hertz: orNull(number)
});

const rows = listOf(tuple(number, orNull(number)));

export type PanelState = Checked<typeof panelState>;
export type Allocator = PanelState['gpu'][number];
export type Rows = Checked<typeof rows>;

/** What a request to the kernel brought. */
export type Answer =
  | { readonly isDone: true; readonly hertz: number | null; readonly state: PanelState | null }
  | { readonly isDone: false; readonly reason: string };

/** One message of the kernel. `other` is a kind that a newer kernel sends; it is passed over. */
export type News =
  | { readonly type: 'state'; readonly state: PanelState }
  | { readonly type: 'history'; readonly rows: Rows }
  | { readonly type: 'rate'; readonly hertz: number }
  | { readonly type: 'answer'; readonly answer: Answer }
  | { readonly type: 'ended' }
  | { readonly type: 'other' };

export function readState(value: unknown): PanelState {
  return panelState(value, 'state');
}

export function readRows(value: unknown): Rows {
  return rows(value, 'history');
}

/** An answer of the kernel, however it was asked. */
export function readAnswer(value: unknown): Answer {
  const found = shape({
    status: text,
    message: orNull(text),
    hertz: orNull(number),
    state: orNull(panelState)
  })(value, 'answer');
  return found.status === 'ok'
    ? { isDone: true, hertz: found.hertz, state: found.state }
    : { isDone: false, reason: found.message ?? found.status };
}

/** @throws ShapeError - it has another shape. */
export function readNews(value: unknown): News {
  switch (shape({ type: text })(value, 'message').type) {
    case 'state':
      return { type: 'state', ...shape({ state: panelState })(value, 'message') };
    case 'history':
      return { type: 'history', ...shape({ rows })(value, 'message') };
    case 'rate':
      return { type: 'rate', ...shape({ hertz: number })(value, 'message') };
    case 'answer':
      return { type: 'answer', answer: readAnswer(value) };
    case 'ended':
      return { type: 'ended' };
    default:
      return { type: 'other' };
  }
}
