/**
 * What the page knows: the server, the kernel that the user looks at, past deaths. Asks the server
 * for no more than what is seen, and signals each change. Draws nothing.
 */
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { ApiError } from './api';
import type { GuardApi } from './api';
import { Series } from './series';
import type { GuardStream } from './stream';
import type {
  CrashEntry,
  GpuOom,
  Gpus,
  KernelState,
  Mark,
  OtherKernel,
  Problem,
  Status,
  StreamMessage,
  Tick
} from './wire';

/**
 * How the page and the server stand.
 *
 * `absent`: Jupyter runs, but without our server part. `away`: no answer, or the stream fell silent;
 * what was last seen stays. `refused`: an answer that says no.
 */
export type ServerState = 'connecting' | 'ok' | 'absent' | 'away' | 'refused';

/** The notebook or console that the user looks at. Its kernel is null while it has none. */
export interface ITarget {
  readonly path: string;
  readonly kernelId: string | null;
}

/** What of this page the user can see, and how fast it should move. */
export interface IView {
  readonly isPageVisible: boolean;
  readonly isPanelVisible: boolean;
  readonly isStatusItemShown: boolean;
  readonly rateHertz: number;
}

/** With the panel closed, only the status bar's number moves. */
const STATUS_ITEM_HERTZ = 0.5;

const SILENT_AFTER_MS = 10_000;
const HEARTBEAT_MS = 5_000;
const RETRY_MS = 15_000;

export class GuardModel implements IDisposable {
  constructor(options: { api: GuardModel.IApi; stream: GuardModel.IStream }) {
    this._api = options.api;
    this._stream = options.stream;
    this._stream.message.connect(this._onMessage, this);
    this._stream.connectionChanged.connect(this._onConnectionChanged, this);
    this._stream.unreadable.connect(this._onUnreadable, this);
    this._heartbeat = setInterval(() => this._onHeartbeat(), HEARTBEAT_MS);
  }

  /** Anything below changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The list of deaths was read anew: at the start, after each reconnection, after a death. */
  get crashesRead(): ISignal<this, readonly CrashEntry[]> {
    return this._crashesRead;
  }

  get server(): ServerState {
    return this._server;
  }

  /** What the server said when it refused, or what could not be read; for the panel. */
  get trouble(): string | null {
    return this._trouble ?? this._unreadable;
  }

  get target(): ITarget | null {
    return this._target;
  }

  /** The kernel of the target; null while nothing is known of it. */
  get kernel(): KernelState | null {
    return this._kernel;
  }

  /** Whether the stream has answered for the current kernel, if only to say that it knows none. */
  get hasAnswer(): boolean {
    return this._hasAnswer;
  }

  get series(): Series {
    return this._series;
  }

  get marks(): readonly Mark[] {
    return this._marks;
  }

  get others(): readonly OtherKernel[] {
    return this._others;
  }

  get gpus(): Gpus | null {
    return this._gpus;
  }

  /** The last time that a GPU was full and this kernel lived on; null once the user has seen it. */
  get gpuOom(): GpuOom | null {
    const key = this._gpuOomKey;
    return key === null || this._dismissed.has(key) ? null : (this._kernel?.gpu_oom ?? null);
  }

  get problems(): readonly Problem[] {
    return this._problems;
  }

  /** Deaths, newest first; null until they were read. */
  get crashes(): readonly CrashEntry[] | null {
    return this._crashes;
  }

  /** Seconds since the values shown were true, or null while they are fresh. */
  get staleSeconds(): number | null {
    const isStale = this._server === 'away' && this._lastTick !== null;
    return isStale ? (Date.now() - (this._lastTick ?? 0)) / 1000 : null;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Ask the server whether we are there, then listen. Asks again until it is. */
  async start(): Promise<void> {
    await this.refresh();
    if (this._isDisposed) {
      return;
    }
    if (this._server === 'ok') {
      this._stream.start();
    } else {
      this._retry = setTimeout(() => void this.start(), RETRY_MS);
    }
  }

  /** Read status and deaths anew. */
  async refresh(): Promise<void> {
    try {
      this._takeStatus(await this._api.status());
      this._server = 'ok';
      this._trouble = null;
    } catch (error) {
      this._takeFailure(error);
    }
    this._changed.emit();
    if (this._server === 'ok') {
      await this.refreshCrashes();
    }
  }

  /** Read the list of deaths anew. A failure leaves the old list, with a word in `trouble`. */
  async refreshCrashes(): Promise<readonly CrashEntry[]> {
    try {
      this._crashes = await this._api.crashes();
    } catch (error) {
      this._trouble = error instanceof Error ? error.message : String(error);
      this._changed.emit();
      return [];
    }
    this._changed.emit();
    this._crashesRead.emit(this._crashes);
    return this._crashes;
  }

  /** The report with this id was opened: it is no longer news, here and on the server. */
  async markRead(id: string): Promise<void> {
    this._crashes =
      this._crashes?.map(entry => (entry.id === id ? { ...entry, unread: false } : entry)) ?? null;
    this._changed.emit();
    await this._api.markRead(id);
  }

  /** Look at another notebook. */
  setTarget(target: ITarget | null): void {
    const isSameKernel = target?.kernelId === this._target?.kernelId;
    if (isSameKernel && target?.path === this._target?.path) {
      return;
    }
    this._target = target;
    if (!isSameKernel) {
      this._series.clear();
      this._marks = [];
      this._hasAnswer = false;
      this._kernel = this._known.find(kernel => kernel.kernel_id === target?.kernelId) ?? null;
      this._watch();
    }
    this._changed.emit();
  }

  /** The user has seen what `gpuOom` tells: it does not come back, the next one does. */
  dismissGpuOom(): void {
    const key = this._gpuOomKey;
    if (key !== null) {
      this._dismissed.add(key);
      this._changed.emit();
    }
  }

  setView(view: IView): void {
    this._view = view;
    this._watch();
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    clearInterval(this._heartbeat);
    if (this._retry !== null) {
      clearTimeout(this._retry);
    }
    this._stream.dispose();
    Signal.clearData(this);
  }

  private get _gpuOomKey(): string | null {
    const kernel = this._kernel;
    return kernel?.gpu_oom ? `${kernel.kernel_id} ${kernel.pid} ${kernel.gpu_oom.time}` : null;
  }

  private _watch(): void {
    const view = this._view;
    if (view === null) {
      return;
    }
    const wasVisible = this._isWatching;
    this._isWatching = view.isPageVisible && (view.isPanelVisible || view.isStatusItemShown);
    if (this._isWatching && !wasVisible) {
      this._watchedSince = Date.now();
    }
    this._stream.watch({
      kernel_id: this._target?.kernelId ?? null,
      rate_hertz: view.isPanelVisible ? view.rateHertz : STATUS_ITEM_HERTZ,
      visible: this._isWatching
    });
  }

  private _onConnectionChanged(_sender: unknown, isOpen: boolean): void {
    if (!isOpen) {
      this._server = 'away';
      this._changed.emit();
      return;
    }
    this._watchedSince = Date.now();
    if (this._server !== 'ok') {
      void this.refresh();
    }
  }

  private _onMessage(_sender: unknown, message: StreamMessage): void {
    if (message.type === 'tick') {
      this._takeTick(message.tick);
    } else if (message.type === 'history' && message.history.kernel_id === this._target?.kernelId) {
      this._series.prepend(message.history.rows);
      this._marks = message.history.marks;
    }
    this._changed.emit();
  }

  private _onUnreadable(_sender: unknown, what: string): void {
    this._unreadable = what;
    this._changed.emit();
  }

  private _onHeartbeat(): void {
    const last = Math.max(this._lastTick ?? 0, this._watchedSince);
    if (this._server === 'ok' && this._isWatching && Date.now() - last > SILENT_AFTER_MS) {
      this._server = 'away';
    }
    if (this._server === 'away') {
      this._changed.emit();
    }
  }

  private _takeStatus(status: Status): void {
    this._known = status.kernels;
    this._problems = status.problems;
    this._gpus ??= status.gpus;
    const id = this._target?.kernelId;
    this._kernel ??= status.kernels.find(kernel => kernel.kernel_id === id) ?? null;
  }

  private _takeFailure(error: unknown): void {
    this._server = error instanceof ApiError ? error.failure : 'refused';
    this._trouble = error instanceof Error ? error.message : String(error);
  }

  private _takeTick(tick: Tick): void {
    this._lastTick = Date.now();
    this._server = 'ok';
    this._unreadable = null;
    this._others = tick.others;
    this._gpus = tick.gpus;
    const { kernel } = tick;
    if (kernel !== null && kernel.kernel_id !== this._target?.kernelId) {
      return;
    }
    const oldPid = this._kernel?.pid ?? null;
    this._hasAnswer = true;
    this._kernel = kernel;
    if (kernel === null) {
      return;
    }
    const time = kernel.host.time ?? tick.time;
    if (oldPid !== null && kernel.pid !== oldPid && this._series.end !== null) {
      // Another process under the same kernel id: a restart. The line of the old one ends here.
      this._series.push((this._series.end + time) / 2, null);
    }
    this._series.push(time, kernel.host.rss_bytes);
    this._marks = mergeMarks(this._marks, kernel.marks);
  }

  private readonly _api: GuardModel.IApi;
  private readonly _stream: GuardModel.IStream;
  private readonly _changed = new Signal<this, void>(this);
  private readonly _crashesRead = new Signal<this, readonly CrashEntry[]>(this);
  private readonly _series = new Series();
  private readonly _dismissed = new Set<string>();
  private readonly _heartbeat: ReturnType<typeof setInterval>;
  private _retry: ReturnType<typeof setTimeout> | null = null;
  private _server: ServerState = 'connecting';
  private _trouble: string | null = null;
  private _unreadable: string | null = null;
  private _target: ITarget | null = null;
  private _view: IView | null = null;
  private _kernel: KernelState | null = null;
  private _known: readonly KernelState[] = [];
  private _marks: readonly Mark[] = [];
  private _others: readonly OtherKernel[] = [];
  private _gpus: Gpus | null = null;
  private _problems: readonly Problem[] = [];
  private _crashes: readonly CrashEntry[] | null = null;
  private _lastTick: number | null = null;
  private _watchedSince = 0;
  private _isWatching = false;
  private _hasAnswer = false;
  private _isDisposed = false;
}

/** Marks of both, each once, oldest first. */
function mergeMarks(old: readonly Mark[], recent: readonly Mark[]): readonly Mark[] {
  const isKnown = (mark: Mark): boolean =>
    old.some(known => known.time === mark.time && known.label === mark.label);
  const fresh = recent.filter(mark => !isKnown(mark));
  return fresh.length === 0 ? old : [...old, ...fresh].sort((a, b) => a.time - b.time);
}

export namespace GuardModel {
  export type IApi = Pick<GuardApi, 'status' | 'crashes' | 'markRead'>;
  export type IStream = Pick<GuardStream, 'start' | 'watch' | 'dispose'> & {
    readonly message: ISignal<unknown, StreamMessage>;
    readonly connectionChanged: ISignal<unknown, boolean>;
    readonly unreadable: ISignal<unknown, string>;
  };
}
