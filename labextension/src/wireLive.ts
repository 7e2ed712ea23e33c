/** What is told of running kernels and of GPUs: see `wire.ts`, and `server/state.py` for the other side. */
import { flag, listOf, mapOf, number, orNull, shape, text, tuple, word } from './check';
import type { Checked } from './check';

export const mark = shape({ time: number, label: text });

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
export const logged = orNull((value: unknown, where: string) =>
  typeof value === 'string' ? value : number(value, where)
);

/** One `fit`, `evaluate` or `predict`. Epoch and step count from 1; step is the one running. */
export const training = shape({
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
export const guard = shape({
  loaded: orNull(flag),
  text,
  fix: orNull(text),
  problems: listOf(text),
  growth: orNull(growth)
});

/** When the limit is reached, if memory rises on as it does; `low` and `high` bound the rate. */
const forecast = shape({
  seconds_left: number,
  bytes_per_second: number,
  low: number,
  high: number
});

/** `used_bytes` is the number that every view shows: what the limit counts, else resident memory. */
export const host = shape({
  used_bytes: orNull(number),
  rss_bytes: orNull(number),
  peak_bytes: orNull(number),
  children_rss_bytes: orNull(number),
  swap_bytes: orNull(number),
  limit: orNull(shape({ bytes: number, name: text, kind: text })),
  forecast: orNull(forecast),
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
  run_since: orNull(number),
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

export const status = shape({
  version: text,
  server_time: number,
  gpus,
  kernels: listOf(kernel),
  problems: listOf(shape({ what: text, fix: text, noted_at: orNull(number) }))
});

/** What moves fastest, between ticks or alone; `host` is null for a kernel that is not known. */
export const fresh = shape({
  kernel_id: orNull(text),
  pid: orNull(number),
  execution_state: orNull(text),
  run_since: orNull(number),
  watched: orNull(flag),
  host: orNull(host),
  hang: orNull(hang)
});

export const tick = shape({
  time: number,
  kernel: orNull(kernel),
  others: listOf(otherKernel),
  gpus
});

export const history = shape({
  kernel_id: text,
  columns: tuple(word('time'), word('used_bytes'), word('limit_bytes')),
  rows: listOf(tuple(number, orNull(number), orNull(number))),
  /** What the kernel held of each card, by its UUID. */
  gpu_rows: orNull(mapOf(listOf(tuple(number, orNull(number))))),
  marks: listOf(mark)
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
export type Forecast = Checked<typeof forecast>;
export type Fresh = Checked<typeof fresh>;
export type Hang = Checked<typeof hang>;
export type KernelState = Checked<typeof kernel>;
export type OtherKernel = Checked<typeof otherKernel>;
export type Status = Checked<typeof status>;
export type Problem = Status['problems'][number];
export type Tick = Checked<typeof tick>;
export type History = Checked<typeof history>;
