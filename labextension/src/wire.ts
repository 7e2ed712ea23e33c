/**
 * What the server extension sends, typed and checked: the counterpart of `report/wire.py`.
 *
 * Times are Unix seconds, except names in `_at` (ISO 8601, UTC). Bytes are whole numbers. Null is
 * "not known" or "does not apply", never 0. Samples lie in `tests/wire/`.
 */
import { listOf, shape, text } from './check';
import { fresh, history, status, tick } from './wireLive';
import type { Fresh, History, Status, Tick } from './wireLive';
import { crashEntry, death, exportPreview, option, report } from './wireReport';
import type { CrashEntry, Death, ExportPreview, Option, Report } from './wireReport';

export * from './wireLive';
export * from './wireReport';

/** Schema of the event that announces a death on Jupyter's own event stream. */
export const DEATH_SCHEMA_ID = 'https://schema.jupyter-tfguard.org/kernel_death/v1';

/** What the page says to the stream: whose memory it wants to see, and how often. */
export interface IWatch {
  readonly kernel_id: string | null;
  readonly rate_hertz: number;
  /** How often the open kernel's numbers may come between ticks. */
  readonly chart_hertz: number;
  /** `status`: the panel is closed, a number every two seconds is enough. */
  readonly detail: 'panel' | 'status';
  readonly visible: boolean;
}

/** One message of the stream. `other` is a kind that a newer server sends; it is passed over. */
export type StreamMessage =
  | { readonly type: 'tick'; readonly tick: Tick }
  | { readonly type: 'history'; readonly history: History }
  | { readonly type: 'number'; readonly fresh: Fresh }
  | { readonly type: 'deaths' }
  | { readonly type: 'other' };

export function readStatus(value: unknown): Status {
  return status(value, 'status');
}

export function readCrashes(value: unknown): CrashEntry[] {
  return shape({ crashes: listOf(crashEntry) })(value, 'crashes').crashes;
}

export function readReport(value: unknown): Report {
  return report(value, 'report');
}

export function readOptions(value: unknown): Option[] {
  return shape({ options: listOf(option) })(value, 'options').options;
}

export function readExportPreview(value: unknown): ExportPreview {
  return exportPreview(value, 'preview');
}

/** Python stacks of all threads, as faulthandler writes them. */
export function readStacks(value: unknown): string[] {
  return shape({ lines: listOf(text) })(value, 'stacks').lines;
}

/** A death event, with or without the keys that Jupyter's event stream adds. */
export function readDeath(value: unknown): Death {
  return death(value, 'event');
}

/**
 * Read one message of the stream.
 *
 * @throws SyntaxError - it is not JSON.
 * @throws ShapeError - it is JSON of another shape.
 */
export function readStreamMessage(data: string): StreamMessage {
  const value: unknown = JSON.parse(data);
  switch (shape({ type: text })(value, 'message').type) {
    case 'tick':
      return { type: 'tick', tick: tick(value, 'tick') };
    case 'history':
      return { type: 'history', history: history(value, 'history') };
    case 'number':
      return { type: 'number', fresh: fresh(value, 'number') };
    case 'deaths':
      return { type: 'deaths' };
    default:
      return { type: 'other' };
  }
}
