/**
 * What the server extension sends of running kernels, and the messages of the stream: the counterpart of
 * `server/state.py`. Samples are in `tests/wire/`.
 *
 * Server and page come in one package, so the shape of a message is not checked here. Keys that the page does
 * not read are left out. Times are Unix seconds, except names in `_at` (ISO 8601, UTC). Null is "not known" or
 * "does not apply", never 0.
 */
export * from './wireReport';

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

/** One message of the stream. A newer server may send other types; they are ignored. */
export type StreamMessage =
  | ({ readonly type: 'tick' } & Tick)
  | ({ readonly type: 'history' } & History)
  | ({ readonly type: 'number' } & Fresh)
  | { readonly type: 'limits'; readonly kernels: readonly LimitAhead[] }
  | { readonly type: 'deaths' };

export type Mark = Readonly<{ time: number; label: string }>;

/** Who holds memory on a card: a kernel with its children, or a process of nobody here. */
export type GpuHolder = Readonly<{
  kernel_id: string | null;
  notebook_path: string | null;
  name: string | null;
  pid: number | null;
  used_bytes: number | null;
  is_this: boolean;
}>;

export type GpuAlarm = Readonly<{
  severity: 'warning' | 'error';
  text: string;
  fix: string | null;
  since: number | null;
}>;

/**
 * A card, or a MIG instance of one, which follows its card and has an index of its own. `holders` is
 * null where processes cannot be seen. `other_bytes` is in use, but of no process that can be seen.
 */
export type GpuDevice = Readonly<{
  nvml_index: number;
  mig_index: number | null;
  gpu_uuid: string;
  name: string;
  memory_total_bytes: number | null;
  memory_used_bytes: number | null;
  utilization_fraction: number | null;
  temperature_celsius: number | null;
  power_watts: number | null;
  power_limit_watts: number | null;
  lost: boolean;
  holders: GpuHolder[] | null;
  other_bytes: number | null;
  note: string | null;
  alarms: GpuAlarm[];
}>;

export type Gpus = Readonly<{
  state: 'none' | 'ok' | 'unavailable' | 'starting';
  reason: string | null;
  devices: GpuDevice[];
}>;

/** A logged value: a number, a word for what JSON cannot hold (`nan`, `inf`), or nothing. */
export type Logged = number | string | null;

/** One `fit`, `evaluate` or `predict`. Epoch and step count from 1; step is the one running. */
export type Training = Readonly<{
  kind: string;
  active: boolean;
  model_name: string | null;
  parameter_count: number | null;
  optimizer: string | null;
  batch_size: number | null;
  epochs: number | null;
  epoch: number | null;
  steps: number | null;
  step: number | null;
  steps_per_second: number | null;
  seconds_left: number | null;
  logs: Record<string, Logged>;
  ended: number | null;
}>;

/** Whether TensorFlow takes GPU memory step by step: what was asked for, and what was seen. */
export type Growth = Readonly<{
  state:
    | 'on'
    | 'proven'
    | 'not_in_force'
    | 'off_by_user'
    | 'too_late'
    | 'mixed'
    | 'capped'
    | 'async'
    | 'no_gpu'
    | 'unknown';
  text: string;
}>;

/** `growth` is null in a kernel without TensorFlow: then nothing speaks of TensorFlow. */
export type Guard = Readonly<{
  loaded: boolean | null;
  text: string;
  fix: string | null;
  problems: string[];
  growth: Growth | null;
}>;

/** The memory limit that binds. */
export type Limit = Readonly<{ bytes: number; name: string; kind: string }>;

/** When the limit is reached, if memory rises on as it does. */
export type Forecast = Readonly<{ seconds_left: number; bytes_per_second: number }>;

/** `used_bytes` is the number that every view shows: what the limit counts, else resident memory. */
export type Host = Readonly<{
  used_bytes: number | null;
  rss_bytes: number | null;
  peak_bytes: number | null;
  children_rss_bytes: number | null;
  swap_bytes: number | null;
  limit: Limit | null;
  forecast: Forecast | null;
  time: number | null;
}>;

/** A busy kernel whose own memory grows toward its limit. A run is one busy time of one process. */
export type LimitAhead = Readonly<{
  kernel_id: string;
  notebook_path: string | null;
  run: string;
  limit: Limit;
  /** Whether the limit is expected within minutes; else memory is near it. */
  is_soon: boolean;
}>;

/** A kernel that hangs in the middle of a cell; `text` ends the sentence "Its main thread is …". */
export type Hang = Readonly<{
  since: number;
  in_fit: boolean;
  text: string | null;
  has_stacks: boolean;
}>;

/** What TensorFlow's allocator says of a device. */
export type TensorFlowMemory = Readonly<{
  device: string;
  gpu_uuid: string | null;
  in_use_bytes: number | null;
  peak_bytes: number | null;
  limit_bytes: number | null;
}>;

/**
 * What a cell did to memory. `_peak` is how far it rose above its value at the cell's start,
 * `_kept` what the end has more than the start; less than 0 where memory was given back.
 */
export type Cell = Readonly<{
  execution_count: number | null;
  head: string | null;
  running: boolean;
  seconds: number | null;
  host_peak_bytes: number | null;
  host_kept_bytes: number | null;
  gpu_peak_bytes: number | null;
  gpu_kept_bytes: number | null;
}>;

/** The last time that a GPU was full and the kernel survived. */
export type GpuOom = Readonly<{ time: number; execution_count: number | null; lines: string[] }>;

/** What moves fastest, between ticks or alone. */
export type Brief = Readonly<{
  kernel_id: string;
  pid: number | null;
  watched: boolean;
  host: Host;
  hang: Hang | null;
}>;

/** `Brief` of the stream; for a kernel that the server does not know, the id alone. */
export type Fresh = Readonly<{ kernel_id: string | null }> & Partial<Omit<Brief, 'kernel_id'>>;

export type KernelState = Brief &
  Readonly<{
    notebook_path: string | null;
    unwatched_reason: string | null;
    guard: Guard;
    training: Training | null;
    marks: Mark[];
    gpu: { readonly tensorflow: TensorFlowMemory[] } | null;
    cells: Cell[];
    gpu_oom: GpuOom | null;
  }>;

export type OtherKernel = Readonly<{
  kernel_id: string;
  notebook_path: string | null;
  kernel_name: string | null;
  rss_bytes: number | null;
  gpu_bytes: number | null;
}>;

/** Something of tfguard itself that does not work. `noted_at` is null for what holds at this moment. */
export type Problem = Readonly<{ what: string; fix: string; noted_at: number | null }>;

export type Status = Readonly<{ gpus: Gpus; kernels: KernelState[]; problems: Problem[] }>;

export type Tick = Readonly<{
  time: number;
  kernel: KernelState | null;
  others: OtherKernel[];
  gpus: Gpus;
}>;

/** Times and values, then columns that the page does not read. */
export type Row = [number, number | null, ...unknown[]];

export type History = Readonly<{
  kernel_id: string;
  rows: Row[];
  /** What the kernel held of each card, by its UUID. */
  gpu_rows: Record<string, Row[]> | null;
  marks: Mark[];
}>;
