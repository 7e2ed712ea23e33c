/** State, latest values and curves of the kernel of the current notebook or console. */
import { isNearStop } from './live/memory';
import { KEPT_SECONDS, Series } from './series';
import type { Brief, Fresh, Gpus, History, KernelState, Mark, OutOfMemory, Tick } from './wire';

/** The current notebook or console. `kernelId` is null while it has no kernel. */
export interface ITarget {
  readonly path: string;
  readonly kernelId: string | null;
}

const OUT_OF_MEMORY = ['memory_stop', 'gpu_oom', 'leak'] as const;

/** Memory that ran out, or grows, with the name of its kind. */
export type ShownOutOfMemory = OutOfMemory & { readonly kind: (typeof OUT_OF_MEMORY)[number] };

export class CurrentKernel {
  /** Memory in use. */
  readonly series = new Series();

  /** Memory of the kernel on each GPU, by GPU UUID. */
  readonly gpuSeries = new Map<string, Series>();

  /** Cells and fits, oldest first. */
  get marks(): readonly Mark[] {
    return this._marks;
  }

  get target(): ITarget | null {
    return this._target;
  }

  /** Null while unknown. */
  get state(): KernelState | null {
    return this._state;
  }

  /** The latest values, whether or not the panel is open. */
  get brief(): Brief | null {
    return this._brief;
  }

  /** Whether the stream has sent a message about this kernel, even if the server does not know it. */
  get hasAnswer(): boolean {
    return this._hasAnswer;
  }

  /** The latest times that memory ran out and this kernel survived, until they are dismissed. */
  get outOfMemory(): readonly ShownOutOfMemory[] {
    return OUT_OF_MEMORY.flatMap(kind => {
      const event = this._state?.[kind] ?? null;
      return event === null ? [] : [{ ...event, kind }];
    }).filter(event => !this._dismissed.has(this._keyOf(event)));
  }

  /** Whether memory is near the threshold at which the guard stops the cell. */
  get isNearStop(): boolean {
    return this._isNearStop;
  }

  /** Switch to another notebook. Returns false if it is the same one. */
  setTarget(target: ITarget | null): boolean {
    const isSameKernel = target?.kernelId === this._target?.kernelId;
    if (isSameKernel && target?.path === this._target?.path) {
      return false;
    }
    this._target = target;
    if (!isSameKernel) {
      this.series.clear();
      this.gpuSeries.clear();
      this._marks = [];
      this._hasAnswer = this._isAsked = false;
      this._state = this._brief = null;
      this._isNearStop = false;
      this._takeKnown();
    }
    return true;
  }

  /** Take the state of all kernels of the server; newer messages replace the current kernel's. */
  takeAll(kernels: readonly KernelState[]): void {
    this._known = kernels;
    this._takeKnown();
  }

  /** Take a `number` message. */
  takeNumber({ kernel_id, pid = null, watched = false, host, hang = null }: Fresh): void {
    if (kernel_id !== (this._target?.kernelId ?? null)) {
      return;
    }
    const brief = kernel_id !== null && host ? { kernel_id, pid, watched, host, hang } : null;
    this._takeBrief(brief, host?.time ?? null);
    if (brief?.watched && this._state !== null) {
      this._state = { ...this._state, ...brief };
      this._judgeStop();
    }
  }

  takeTick({ gpus, kernel, time }: Tick): void {
    const id = this._target?.kernelId ?? null;
    // A tick without a kernel may have been sent before the target had one.
    if (kernel === null ? id !== null && !this._isAsked : kernel.kernel_id !== id) {
      return;
    }
    this._hasAnswer = true;
    this._takeState(kernel);
    this._takeBrief(kernel, kernel?.host.time ?? time);
    if (kernel !== null) {
      this._addMarks(kernel.marks);
      this._pushGpus(time, gpus);
    }
  }

  /** Insert the server's history before the samples received so far. */
  takeHistory({ gpu_rows, kernel_id, marks, rows }: History): void {
    if (kernel_id !== this._target?.kernelId) {
      return;
    }
    this._isAsked = true;
    this.series.prepend(rows);
    for (const [uuid, gpuRows] of Object.entries(gpu_rows ?? {})) {
      this._gpuSeriesOf(uuid).prepend(gpuRows);
    }
    this._marks = marks;
  }

  /** Dismiss one `outOfMemory`; a later one is shown again. */
  dismiss(event: ShownOutOfMemory): void {
    this._dismissed.add(this._keyOf(event));
  }

  private _keyOf({ kind, time }: ShownOutOfMemory): string {
    return `${this._state?.kernel_id} ${this._state?.pid} ${kind} ${time}`;
  }

  private _judgeStop(): void {
    const { guard, host } = this._state ?? {};
    this._isNearStop =
      host !== undefined && isNearStop(host, guard?.stop ?? null, this._isNearStop);
  }

  private _takeKnown(): void {
    const id = this._target?.kernelId;
    this._state ??= this._known.find(kernel => kernel.kernel_id === id) ?? null;
    this._brief ??= this._state;
    this._judgeStop();
  }

  /**
   * Between a crash and the restart the server tracks no process for some seconds. Keep showing the last state,
   * so that the panel keeps its layout.
   */
  private _takeState(kernel: KernelState | null): void {
    const last = this._state;
    const isRestarting = kernel?.unwatched_reason === 'starting' && last?.watched === true;
    this._state = isRestarting
      ? {
          ...last,
          hang: null,
          guard: { ...last.guard, loaded: null, text: 'restarting' },
          host: { ...last.host, forecast: null }
        }
      : kernel;
    this._judgeStop();
  }

  /** Take the latest values and add a point to the curve. Another process with the same kernel ID means a restart. */
  private _takeBrief(brief: Brief | null, time: number | null): void {
    const oldPid = this._brief?.pid ?? null;
    this._brief = brief;
    if (brief === null || time === null) {
      return;
    }
    const { end } = this.series;
    if (oldPid !== null && brief.pid !== oldPid && end !== null) {
      // End the curve of the old process.
      this.series.push((end + time) / 2, null);
    }
    this.series.push(time, brief.host.used_bytes);
  }

  /** Add the kernel's current memory on each GPU; 0 on a GPU that it no longer uses. */
  private _pushGpus(time: number, { devices }: Gpus): void {
    for (const { gpu_uuid, holders } of devices) {
      const own = holders?.find(holder => holder.is_this);
      if (own !== undefined || this.gpuSeries.has(gpu_uuid)) {
        this._gpuSeriesOf(gpu_uuid).push(time, own === undefined ? 0 : own.used_bytes);
      }
    }
  }

  /** Add new marks; drop marks older than the curve. */
  private _addMarks(recent: readonly Mark[]): void {
    const fresh = recent.filter(
      ({ time, label }) => !this._marks.some(known => known.time === time && known.label === label)
    );
    if (fresh.length > 0) {
      const oldest = (this.series.end ?? 0) - KEPT_SECONDS;
      this._marks = [...this._marks, ...fresh]
        .filter(({ time }) => time >= oldest)
        .sort((a, b) => a.time - b.time);
    }
  }

  private _gpuSeriesOf(uuid: string): Series {
    const series = this.gpuSeries.get(uuid) ?? new Series();
    this.gpuSeries.set(uuid, series);
    return series;
  }

  private readonly _dismissed = new Set<string>();
  private _brief: Brief | null = null;
  private _hasAnswer = false;
  /** The history of this kernel was received. The server sends it before the first tick of the kernel. */
  private _isAsked = false;
  private _isNearStop = false;
  private _known: readonly KernelState[] = [];
  private _marks: readonly Mark[] = [];
  private _state: KernelState | null = null;
  private _target: ITarget | null = null;
}
