/**
 * What the server extension sends, typed and checked: the counterpart of `report/wire.py`.
 *
 * Times are Unix seconds, except names in `_at` (ISO 8601, UTC). Bytes are whole numbers. Null is
 * "not known" or "does not apply", never 0. Samples lie in `tests/wire/`.
 */
import { flag, listOf, mapOf, number, orNull, shape, text, tuple, word } from './check';
import type { Checked } from './check';

/** Schema of the event that announces a death on Jupyter's own event stream. */
export const DEATH_SCHEMA_ID = 'https://schema.jupyter-tfguard.org/kernel_death/v1';

const mark = shape({ time: number, label: text });

/** Who holds memory on a card: a kernel with its children, or a process of nobody here. */
const holder = shape({
  kernel_id: orNull(text),
  notebook_path: orNull(text),
  name: orNull(text),
  pid: orNull(number),
  used_bytes: orNull(number),
  is_this: flag
});

const alarm = shape({
  severity: word('warning', 'error'),
  text,
  fix: orNull(text),
  since: orNull(number)
});

/**
 * A card, or a MIG instance of one, which follows its card and has an index of its own. `holders` is
 * null where processes cannot be seen. `other_bytes` is in use, but of no process that can be seen.
 */
const gpuDevice = shape({
  nvml_index: number,
  mig_index: orNull(number),
  gpu_uuid: text,
  name: text,
  memory_total_bytes: orNull(number),
  memory_used_bytes: orNull(number),
  utilization_fraction: orNull(number),
  temperature_celsius: orNull(number),
  power_watts: orNull(number),
  power_limit_watts: orNull(number),
  lost: flag,
  holders: orNull(listOf(holder)),
  other_bytes: orNull(number),
  note: orNull(text),
  alarms: listOf(alarm)
});

const gpus = shape({
  state: word('none', 'ok', 'unavailable', 'starting'),
  reason: orNull(text),
  devices: listOf(gpuDevice)
});

/** A logged value: a number, a word for what JSON cannot hold (`nan`, `inf`), or nothing. */
const logged = orNull((value: unknown, where: string) =>
  typeof value === 'string' ? value : number(value, where)
);

/** One `fit`, `evaluate` or `predict`. Epoch and step count from 1; step is the one running. */
const training = shape({
  kind: text,
  active: flag,
  model_name: orNull(text),
  parameter_count: orNull(number),
  optimizer: orNull(text),
  batch_size: orNull(number),
  epochs: orNull(number),
  epoch: orNull(number),
  steps: orNull(number),
  step: orNull(number),
  steps_per_second: orNull(number),
  seconds_left: orNull(number),
  logs: mapOf(logged),
  started: orNull(number),
  ended: orNull(number)
});

/** Whether TensorFlow takes GPU memory step by step: what was asked for, and what was seen. */
const growth = shape({
  state: word(
    'on',
    'proven',
    'not_in_force',
    'off_by_user',
    'too_late',
    'mixed',
    'capped',
    'async',
    'no_gpu',
    'unknown'
  ),
  text
});

/** `growth` is null in a kernel without TensorFlow: then nothing speaks of TensorFlow. */
const guard = shape({
  loaded: orNull(flag),
  text,
  fix: orNull(text),
  problems: listOf(text),
  growth: orNull(growth)
});

const host = shape({
  rss_bytes: orNull(number),
  peak_bytes: orNull(number),
  children_rss_bytes: orNull(number),
  swap_bytes: orNull(number),
  limit: orNull(shape({ bytes: number, name: text, kind: text, used_bytes: orNull(number) })),
  available_bytes: orNull(number),
  time: orNull(number)
});

/** A kernel that stands still in the middle of a cell; `text` ends the sentence "Its main thread is …". */
const hang = shape({ since: number, in_fit: flag, text: orNull(text), has_stacks: flag });

/** GPU memory of a kernel: `bytes` as the driver sees it, on all cards; `tensorflow` from inside. */
const kernelGpu = shape({
  bytes: orNull(number),
  tensorflow: listOf(
    shape({
      device: text,
      gpu_uuid: orNull(text),
      in_use_bytes: orNull(number),
      peak_bytes: orNull(number),
      limit_bytes: orNull(number)
    })
  )
});

/**
 * What a cell did to memory. `_peak` is how far it rose above its value at the cell's start,
 * `_kept` what the end has more than the start; less than 0 where memory was given back.
 */
const cell = shape({
  execution_count: orNull(number),
  head: orNull(text),
  running: flag,
  seconds: orNull(number),
  host_peak_bytes: orNull(number),
  host_kept_bytes: orNull(number),
  gpu_peak_bytes: orNull(number),
  gpu_kept_bytes: orNull(number)
});

/** The last time that a GPU was full and the kernel lived on. */
const gpuOom = shape({ time: number, execution_count: orNull(number), lines: listOf(text) });

const kernel = shape({
  kernel_id: text,
  pid: orNull(number),
  kernel_name: orNull(text),
  notebook_path: orNull(text),
  execution_state: orNull(text),
  watched: flag,
  unwatched_reason: orNull(text),
  guard,
  host,
  training: orNull(training),
  marks: listOf(mark),
  hang: orNull(hang),
  gpu: orNull(kernelGpu),
  cells: listOf(cell),
  gpu_oom: orNull(gpuOom)
});

const otherKernel = shape({
  kernel_id: text,
  notebook_path: orNull(text),
  kernel_name: orNull(text),
  rss_bytes: orNull(number),
  gpu_bytes: orNull(number),
  execution_state: orNull(text)
});

const status = shape({
  version: text,
  server_time: number,
  gpus,
  kernels: listOf(kernel),
  problems: listOf(shape({ what: text, fix: text }))
});

const tick = shape({ time: number, kernel: orNull(kernel), others: listOf(otherKernel), gpus });

const history = shape({
  kernel_id: text,
  columns: tuple(word('time'), word('rss_bytes'), word('limit_bytes')),
  rows: listOf(tuple(number, orNull(number), orNull(number))),
  marks: listOf(mark)
});

const confidence = word('certain', 'likely', 'possible');

/** Deaths without a report of their own, counted: of one kernel in a loop, or of many at once. */
const group = shape({
  deaths_count: number,
  kernels_count: number,
  kernels_count_is_exact: flag,
  one_kernel: flag,
  first_at: text,
  last_at: text,
  causes: listOf(shape({ cause: text, short_title: text, confidence, count: number }))
});

const crashEntryKeys = {
  id: text,
  kernel_id: orNull(text),
  pid: orNull(number),
  kernel_name: orNull(text),
  notebook_path: orNull(text),
  cause: text,
  confidence,
  title: text,
  short_title: text,
  because: listOf(text),
  where: orNull(text),
  died_at: text,
  kernel_alive: flag,
  unread: flag,
  group: orNull(group)
};

const crashEntry = shape(crashEntryKeys);

const evidence = shape({ source: text, text });

const advice = shape({ title: text, text, code: orNull(text) });

const report = shape({
  ...crashEntryKeys,
  chips: listOf(text),
  evidence: listOf(evidence),
  against: listOf(evidence),
  not_checked: listOf(text),
  advice: listOf(advice),
  // Counted deaths, and reports of older versions, tell the titles alone.
  other_findings: listOf(
    shape({
      cause: text,
      confidence,
      title: text,
      evidence: orNull(listOf(evidence)),
      advice: orNull(listOf(advice))
    })
  ),
  activity: listOf(shape({ label: text, value: text, code: flag })),
  memory: orNull(
    shape({
      samples: listOf(tuple(number, orNull(number))),
      limit_bytes: orNull(number),
      limit_name: orNull(text),
      marks: listOf(mark),
      died: orNull(number)
    })
  ),
  left: shape({
    metrics: orNull(shape({ columns: listOf(text), rows: listOf(listOf(logged)) })),
    checkpoint: orNull(shape({ path: text, written_at: orNull(text) }))
  }),
  arrays: listOf(shape({ name: text, bytes: number })),
  native_tail: listOf(text),
  python_stack: listOf(text),
  versions: mapOf(orNull(text))
});

const death = shape({
  id: text,
  kernel_id: text,
  cause: text,
  confidence,
  kernel_alive: flag,
  /** Only where the death was counted, and `id` is that of its group. */
  deaths_count: orNull(number)
});

export type Gpus = Checked<typeof gpus>;
export type GpuDevice = Gpus['devices'][number];
export type GpuHolder = Checked<typeof holder>;
export type GpuAlarm = Checked<typeof alarm>;
export type GpuOom = Checked<typeof gpuOom>;
export type KernelGpu = Checked<typeof kernelGpu>;
export type TensorFlowMemory = KernelGpu['tensorflow'][number];
export type Mark = Checked<typeof mark>;
export type Training = Checked<typeof training>;
export type Guard = Checked<typeof guard>;
export type Growth = Checked<typeof growth>;
export type Cell = Checked<typeof cell>;
export type Host = Checked<typeof host>;
export type Hang = Checked<typeof hang>;
export type KernelState = Checked<typeof kernel>;
export type OtherKernel = Checked<typeof otherKernel>;
export type Status = Checked<typeof status>;
export type Problem = Status['problems'][number];
export type Tick = Checked<typeof tick>;
export type History = Checked<typeof history>;
export type Confidence = Checked<typeof confidence>;
export type CrashEntry = Checked<typeof crashEntry>;
export type Group = Checked<typeof group>;
export type Evidence = Checked<typeof evidence>;
export type Report = Checked<typeof report>;
export type Advice = Report['advice'][number];
export type Death = Checked<typeof death>;

/** What the page says to the stream: whose memory it wants to see, and how often. */
export interface IWatch {
  readonly kernel_id: string | null;
  readonly rate_hertz: number;
  readonly visible: boolean;
}

/** One message of the stream. `other` is a kind that a newer server sends; it is passed over. */
export type StreamMessage =
  | { readonly type: 'tick'; readonly tick: Tick }
  | { readonly type: 'history'; readonly history: History }
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
    default:
      return { type: 'other' };
  }
}
