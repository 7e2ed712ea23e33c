/**
 * Types of the messages about running kernels and of the stream: the counterpart of `report/live.py` and `server/state.py`.
 * Samples are in `tests/wire/`.
 *
 * Server and page come in one package, so messages are not validated here. Keys that the page does not read are
 * left out. Times are Unix seconds; names in `_at` are ISO 8601, UTC. Null means "unknown" or "does not apply",
 * never 0.
 */
import type { Logged } from './wireReport';

export * from './wireReport';

/** The page's request to the stream: which kernel, and how often. */
export interface IWatch {
  readonly kernel_id: string | null;
  readonly rate_hertz: number;
  /** Maximum rate of `number` messages between ticks. */
  readonly chart_hertz: number;
  /** `status`: the panel is closed; one `number` every two seconds is enough. */
  readonly detail: 'panel' | 'status';
  readonly visible: boolean;
}

/** One message of the stream. A newer server may send other types; they are ignored. */
export type StreamMessage =
  | ({ readonly type: 'tick' } & Tick)
  | ({ readonly type: 'history' } & History)
  | ({ readonly type: 'number' } & Fresh)
  | { readonly type: 'limits'; readonly kernels: readonly LimitAhead[] }
  | { readonly type: 'crashes' };

export type Mark = Readonly<{ time: number; label: string }>;

/** A holder of GPU memory: a kernel with its child processes, or a process outside this server. */
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
 * A GPU or a MIG instance. An instance follows its GPU and has its own `mig_index`. `holders` is null if processes
 * are not visible. `other_bytes` is in use, but not by a visible process.
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

/**
 * One `fit`, `evaluate` or `predict`, or a training loop of the notebook (kind `loop`). Epoch and step count from 1; step is
 * the one running, of a loop the newest update of its optimizer.
 */
export type Training = Readonly<{
  kind: string;
  active: boolean;
  /** It was not started, because it cannot fit into memory. */
  refused: boolean;
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

/** Memory growth: whether it was requested and whether it was observed. */
export type Growth = Readonly<{
  state:
    | 'on'
    | 'proven'
    | 'not_in_force'
    | 'off_by_user'
    | 'too_late'
    | 'capped'
    | 'async'
    | 'no_gpu'
    | 'unknown';
  text: string;
}>;

/**
 * The stop of cells that fill the host memory. `stop_bytes` is the free memory below which a cell is stopped. `notes`
 * are sentences about what does not work here.
 */
export type Stop = Readonly<{
  state: 'on' | 'paused' | 'off' | 'unavailable';
  stop_bytes: number | null;
  notes: string[];
}>;

/** `growth` is null in a kernel without TensorFlow. */
export type Guard = Readonly<{
  loaded: boolean | null;
  text: string;
  fix: string | null;
  problems: string[];
  growth: Growth | null;
  stop: Stop | null;
}>;

/** The memory limit that will be reached first. */
export type Limit = Readonly<{ bytes: number; name: string; kind: string }>;

/** When memory reaches the limit at the current rate. */
export type Forecast = Readonly<{ seconds_left: number; bytes_per_second: number }>;

/** `used_bytes` is the value that every view shows: the memory that the limit counts, else resident memory. */
export type Host = Readonly<{
  used_bytes: number | null;
  rss_bytes: number | null;
  children_rss_bytes: number | null;
  /** More about the kernel's memory: `resident 5.90 GiB`. Unknown values are left out. */
  details: readonly string[];
  limit: Limit | null;
  forecast: Forecast | null;
  time: number | null;
}>;

/** A busy kernel whose own memory grows toward its limit. A run is one busy period of one process. */
export type LimitAhead = Readonly<{
  kernel_id: string;
  notebook_path: string | null;
  run: string;
  limit: Limit;
  /** True: memory will reach the limit within minutes. False: memory is near the limit. */
  is_soon: boolean;
}>;

/**
 * A kernel that hangs in a cell, or with `computes` a fit without steps. `text` ends the sentence "Its main thread is …",
 * `line` is where Python is.
 */
export type Hang = Readonly<{
  since: number;
  in_fit: boolean;
  computes: boolean;
  line: string | null;
  text: string | null;
  has_stacks: boolean;
  /** Facts about a child process that was killed for lack of memory in the cell that hangs; null if none was. */
  worker_killed: readonly string[] | null;
}>;

/** Values of TensorFlow's allocator for one device. */
export type TensorFlowMemory = Readonly<{
  device: string;
  gpu_uuid: string | null;
  in_use_bytes: number | null;
  peak_bytes: number | null;
  limit_bytes: number | null;
}>;

/**
 * Memory change of a cell. `_peak` is the rise above the value at the start of the cell; `_kept` is the value at
 * the end minus the value at the start, negative if memory was freed.
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

/** The latest time that memory ran out in a cell and the kernel survived. */
export type OutOfMemory = Readonly<{
  time: number;
  execution_count: number | null;
  /** Of a stop: `stopped`, `refused` for a single request, `not_started` for a fit, `beside` for work of an
   * earlier cell; null for older kernels. */
  what: string | null;
  lines: string[];
}>;

/** The values that change fastest. */
export type Brief = Readonly<{
  kernel_id: string;
  pid: number | null;
  watched: boolean;
  host: Host;
  hang: Hang | null;
}>;

/** `Brief` in the stream; for an unknown kernel, only the ID. */
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
    gpu_oom: OutOfMemory | null;
    /** A cell that the guard stopped because the host memory was nearly full. */
    memory_stop: OutOfMemory | null;
    leak: OutOfMemory | null;
  }>;

export type OtherKernel = Readonly<{
  kernel_id: string;
  notebook_path: string | null;
  kernel_name: string | null;
  rss_bytes: number | null;
  gpu_bytes: number | null;
}>;

/** A problem of tfguard itself. `noted_at` is null for a problem that exists now. */
export type Problem = Readonly<{ what: string; fix: string; noted_at: number | null }>;

export type Status = Readonly<{ gpus: Gpus; kernels: KernelState[]; problems: Problem[] }>;

export type Tick = Readonly<{
  time: number;
  kernel: KernelState | null;
  others: OtherKernel[];
  gpus: Gpus;
}>;

/** Time and value. */
export type Row = [number, number | null];

export type History = Readonly<{
  kernel_id: string;
  rows: Row[];
  /** Memory of the kernel on each GPU, by GPU UUID. */
  gpu_rows: Record<string, Row[]> | null;
  marks: Mark[];
}>;
