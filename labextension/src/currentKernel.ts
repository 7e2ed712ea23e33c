/** The kernel of the notebook or console that the user looks at: its state, its newest numbers, its lines. */
import { KernelCurves } from './curves';
import type { Fresh, GpuOom, History, KernelState, Tick } from './wire';

/** The notebook or console that the user looks at. Its kernel is null while it has none. */
export interface ITarget {
  readonly path: string;
  readonly kernelId: string | null;
}

/** What is known of the kernel also while the panel is closed. */
export type Brief = Pick<
  KernelState,
  'kernel_id' | 'pid' | 'execution_state' | 'run_since' | 'watched' | 'host' | 'hang'
>;

export class CurrentKernel {
  readonly curves = new KernelCurves();

  get target(): ITarget | null {
    return this._target;
  }

  /** Null while nothing is known of it. */
  get state(): KernelState | null {
    return this._state;
  }

  /** The newest numbers, whether or not the panel is open. */
  get brief(): Brief | null {
    return this._brief;
  }

  /** Whether the stream has answered for this kernel, if only to say that it knows none. */
  get hasAnswer(): boolean {
    return this._hasAnswer;
  }

  /** The last time that a GPU was full and this kernel lived on; null once the user has seen it. */
  get gpuOom(): GpuOom | null {
    const key = this._gpuOomKey;
    return key === null || this._dismissed.has(key) ? null : (this._state?.gpu_oom ?? null);
  }

  /** Look at another notebook; whether it is another at all. */
  setTarget(target: ITarget | null): boolean {
    const isSameKernel = target?.kernelId === this._target?.kernelId;
    if (isSameKernel && target?.path === this._target?.path) {
      return false;
    }
    this._target = target;
    if (!isSameKernel) {
      this.curves.clear();
      this._hasAnswer = this._isAsked = false;
      this._state = this._brief = null;
      this._takeKnown();
    }
    return true;
  }

  /** All kernels of the server: what is told of this one stands until something newer comes. */
  takeAll(kernels: readonly KernelState[]): void {
    this._known = kernels;
    this._takeKnown();
  }

  /** Numbers between two ticks. */
  takeNumber(fresh: Fresh): void {
    const { host, kernel_id, watched } = fresh;
    if (kernel_id !== (this._target?.kernelId ?? null)) {
      return;
    }
    const isKnown = kernel_id !== null && host !== null;
    const brief = isKnown ? { ...fresh, kernel_id, host, watched: watched === true } : null;
    this._takeBrief(brief, brief?.host.time ?? null);
    if (brief !== null && this._state !== null) {
      this._state = { ...this._state, ...brief };
    }
  }

  takeTick({ gpus, kernel, time }: Tick): void {
    const id = this._target?.kernelId ?? null;
    // A tick without a kernel may have been under way since the target had none.
    if (kernel === null ? id !== null && !this._isAsked : kernel.kernel_id !== id) {
      return;
    }
    this._hasAnswer = true;
    this._state = kernel;
    this._takeBrief(kernel, kernel?.host.time ?? time);
    if (kernel !== null) {
      this.curves.addMarks(kernel.marks);
      this.curves.pushGpus(time, gpus);
    }
  }

  takeHistory(history: History): void {
    if (history.kernel_id === this._target?.kernelId) {
      this._isAsked = true;
      this.curves.prepend(history);
    }
  }

  /** The user has seen what `gpuOom` tells: it does not come back, the next one does. False: there is none. */
  dismissGpuOom(): boolean {
    const key = this._gpuOomKey;
    if (key === null) {
      return false;
    }
    this._dismissed.add(key);
    return true;
  }

  private get _gpuOomKey(): string | null {
    const kernel = this._state;
    return kernel?.gpu_oom ? `${kernel.kernel_id} ${kernel.pid} ${kernel.gpu_oom.time}` : null;
  }

  private _takeKnown(): void {
    const id = this._target?.kernelId;
    this._state ??= this._known.find(kernel => kernel.kernel_id === id) ?? null;
    this._brief ??= this._state;
  }

  /** New numbers, and a point in the line; another process under the same id is a restart. */
  private _takeBrief(brief: Brief | null, time: number | null): void {
    const oldPid = this._brief?.pid ?? null;
    this._brief = brief;
    if (brief !== null && time !== null) {
      this.curves.push(time, brief.host.used_bytes, oldPid !== null && brief.pid !== oldPid);
    }
  }

  private readonly _dismissed = new Set<string>();
  private _brief: Brief | null = null;
  private _hasAnswer = false;
  /** The history of this kernel came, which the server sends before its first tick: ticks are its own now. */
  private _isAsked = false;
  private _known: readonly KernelState[] = [];
  private _state: KernelState | null = null;
  private _target: ITarget | null = null;
}
