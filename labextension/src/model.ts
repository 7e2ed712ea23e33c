/**
 * State of the page: the server, the current kernel, past crashes. Requests only the data that is visible,
 * and emits a signal for each change. Draws nothing.
 */
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { GuardApi } from './api';
import { CurrentKernel } from './currentKernel';
import type { ITarget, ShownOutOfMemory } from './currentKernel';
import { Crashes } from './crashes';
import type { Series } from './series';
import { ServerLink } from './serverLink';
import type { ServerState } from './serverLink';
import type { GuardStream } from './stream';
import type {
  Brief,
  CrashEntry,
  Gpus,
  KernelState,
  LimitAhead,
  Mark,
  OtherKernel,
  Problem,
  StreamMessage
} from './wire';

const HEARTBEAT_MS = 5_000;
const RETRY_MS = 15_000;

/** Close a stream that is silent for longer although messages are due: after a suspend, the socket may be dead. */
const SILENT_AFTER_MS = 10_000;

/** How often to read the status, which has tfguard's own problems and the reason for a denied access. */
const STATUS_AWAY_MS = 20_000;
const STATUS_SEEN_MS = 60_000;

/** A crash that the stream announces is in the list after this time. */
const AFTER_HINT_MS = 3_000;

/** What the user can see of this page, and the update rates. */
export interface IView {
  readonly isPageVisible: boolean;
  readonly isPanelVisible: boolean;
  /** Whether something outside the panel uses the memory values: status bar, warning. */
  readonly isFollowed: boolean;
  readonly rateHertz: number;
  readonly chartHertz: number;
}

export class GuardModel implements IDisposable {
  constructor(options: { api: GuardModel.IApi; stream: GuardModel.IStream }) {
    this._api = options.api;
    this._stream = options.stream;
    this._crashes = new Crashes(this._api);
    this._crashes.changed.connect(() => this._changed.emit());
    this._stream.message.connect(this._onMessage, this);
    this._stream.connectionChanged.connect(this._onConnectionChanged, this);
    this._heartbeat = setInterval(() => this._onHeartbeat(), HEARTBEAT_MS);
  }

  /** Only the values of the kernel changed. */
  get moved(): ISignal<this, void> {
    return this._moved;
  }

  /** Anything below changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The list of crashes was read: at the start, after each reconnection, after a crash. */
  get crashesRead(): ISignal<unknown, readonly CrashEntry[]> {
    return this._crashes.listRead;
  }

  /** Kernels whose memory grows toward its limit, including those of other notebooks. */
  get limitsAhead(): ISignal<this, readonly LimitAhead[]> {
    return this._limitsAhead;
  }

  get server(): ServerState {
    return this._link.state;
  }

  /** Error message of the server, for the panel. */
  get trouble(): string | null {
    return this._link.trouble ?? this._crashes.trouble;
  }

  get target(): ITarget | null {
    return this._current.target;
  }

  /** The kernel of the target; null while unknown. */
  get kernel(): KernelState | null {
    return this._current.state;
  }

  /** The latest values of the target's kernel, whether or not the panel is open. */
  get brief(): Brief | null {
    return this._current.brief;
  }

  /** Whether the stream has sent a message about this kernel, even if the server does not know it. */
  get hasAnswer(): boolean {
    return this._current.hasAnswer;
  }

  get series(): Series {
    return this._current.series;
  }

  /** Memory of the kernel on each GPU, by GPU UUID. */
  get gpuSeries(): ReadonlyMap<string, Series> {
    return this._current.gpuSeries;
  }

  get marks(): readonly Mark[] {
    return this._current.marks;
  }

  get others(): readonly OtherKernel[] {
    return this._others;
  }

  get gpus(): Gpus | null {
    return this._gpus;
  }

  /** The latest times that memory ran out and this kernel survived, until they are dismissed. */
  get outOfMemory(): readonly ShownOutOfMemory[] {
    return this._current.outOfMemory;
  }

  /** Whether memory is near the threshold at which the guard stops the cell. */
  get isNearStop(): boolean {
    return this._current.isNearStop;
  }

  get problems(): readonly Problem[] {
    return this._problems;
  }

  /** Crashes, newest first; null until read. */
  get crashes(): readonly CrashEntry[] | null {
    return this._crashes.entries;
  }

  /** Age of the values in seconds, or null while they are up to date. */
  get staleSeconds(): number | null {
    return this.server === 'away' && this._heardAt > 0 ? (Date.now() - this._heardAt) / 1000 : null;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Check for the server extension, then open the stream. Retries until it is found. */
  async start(): Promise<void> {
    await this.refresh();
    if (this._isDisposed) {
      return;
    }
    if (this.server === 'ok') {
      this._isStarted = true;
      this._stream.start();
    } else {
      this._retry = setTimeout(() => void this.start(), RETRY_MS);
    }
  }

  /** Read the status and the list of crashes. */
  async refresh(): Promise<void> {
    await this._readStatus();
    if (this.server === 'ok') {
      await this.refreshCrashes();
    }
  }

  /** Read the list of crashes. On failure, keep the old list, set `trouble` and return null. */
  async refreshCrashes(): Promise<readonly CrashEntry[] | null> {
    return this._crashes.refresh();
  }

  /** Mark the report as read, on this page and on the server. */
  async markRead(id: string): Promise<void> {
    await this._crashes.markRead(id);
  }

  /** Switch to another notebook. */
  setTarget(target: ITarget | null): void {
    if (this._current.setTarget(target)) {
      this._watch();
      this._changed.emit();
    }
  }

  /** Dismiss one `outOfMemory`; a later one is shown again. */
  dismiss(event: ShownOutOfMemory): void {
    this._current.dismiss(event);
    this._changed.emit();
  }

  setView(view: IView): void {
    this._view = view;
    this._watch();
    this._readStatusIfDue();
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    clearInterval(this._heartbeat);
    for (const timer of [this._retry, this._hint]) {
      if (timer !== null) {
        clearTimeout(timer);
      }
    }
    this._stream.dispose();
    Signal.clearData(this);
  }

  /** Send the stream what the user can see. */
  private _watch(): void {
    const view = this._view;
    if (view === null) {
      return;
    }
    const wasWatching = this._isWatching;
    this._isWatching = view.isPageVisible && (view.isPanelVisible || view.isFollowed);
    if (this._isWatching && !wasWatching) {
      this._expectedSince = Date.now();
    }
    this._stream.watch({
      kernel_id: this.target?.kernelId ?? null,
      rate_hertz: view.rateHertz,
      chart_hertz: view.chartHertz,
      detail: view.isPanelVisible ? 'panel' : 'status',
      visible: this._isWatching
    });
  }

  private _onConnectionChanged(_sender: unknown, isOpen: boolean): void {
    if (!isOpen) {
      this._link.lose();
      this._changed.emit();
      return;
    }
    this._link.open();
    this._expectedSince = Date.now();
    if (this._link.isBehind) {
      void this.refresh();
    }
  }

  private _onMessage(_sender: unknown, message: StreamMessage): void {
    switch (message.type) {
      case 'number':
        this._heardAt = Date.now();
        this._current.takeNumber(message);
        (this._link.hear() ? this._changed : this._moved).emit();
        break;
      case 'tick':
        this._heardAt = Date.now();
        this._link.hear();
        this._others = message.others;
        this._gpus = message.gpus;
        this._current.takeTick(message);
        this._changed.emit();
        break;
      case 'history':
        this._current.takeHistory(message);
        this._changed.emit();
        break;
      case 'limits':
        this._limitsAhead.emit(message.kernels);
        break;
      case 'crashes':
        this._hint ??= setTimeout(() => {
          this._hint = null;
          void this.refreshCrashes();
        }, AFTER_HINT_MS);
        break;
    }
  }

  private _onHeartbeat(): void {
    const now = Date.now();
    if (this._isWatching && now - Math.max(this._heardAt, this._expectedSince) > SILENT_AFTER_MS) {
      this._expectedSince = now;
      this._stream.reopen();
    } else if (this._link.isBehind && this.server === 'ok') {
      void this.refresh();
    }
    this._readStatusIfDue();
    if (this.server === 'away') {
      this._changed.emit();
    }
  }

  private _readStatusIfDue(): void {
    const isOk = this.server === 'ok';
    const view = this._view;
    const isSeen = view?.isPageVisible === true && (view.isPanelVisible || !isOk);
    const pause = isOk ? STATUS_SEEN_MS : STATUS_AWAY_MS;
    if (this._isStarted && isSeen && !this._isReading && Date.now() - this._readAt >= pause) {
      void this._readStatus();
    }
  }

  /** Read kernels, GPUs and problems. While the stream works, do not show a failure of this request. */
  private async _readStatus(): Promise<void> {
    this._isReading = true;
    this._readAt = Date.now();
    try {
      const { gpus, kernels, problems } = await this._api.status();
      this._current.takeAll(kernels);
      this._problems = problems;
      this._gpus ??= gpus;
      this._link.answer();
    } catch (error) {
      if (this.server !== 'ok') {
        this._link.fail(error);
      }
    } finally {
      this._isReading = false;
    }
    this._changed.emit();
  }

  private readonly _api: GuardModel.IApi;
  private readonly _stream: GuardModel.IStream;
  private readonly _moved = new Signal<this, void>(this);
  private readonly _changed = new Signal<this, void>(this);
  private readonly _limitsAhead = new Signal<this, readonly LimitAhead[]>(this);
  private readonly _current = new CurrentKernel();
  private readonly _crashes: Crashes;
  private readonly _link = new ServerLink();
  private readonly _heartbeat: ReturnType<typeof setInterval>;
  private _expectedSince = 0;
  private _heardAt = 0;
  private _hint: ReturnType<typeof setTimeout> | null = null;
  private _retry: ReturnType<typeof setTimeout> | null = null;
  private _others: readonly OtherKernel[] = [];
  private _gpus: Gpus | null = null;
  private _problems: readonly Problem[] = [];
  private _view: IView | null = null;
  private _isDisposed = false;
  private _isReading = false;
  private _isStarted = false;
  private _isWatching = false;
  private _readAt = 0;
}

export namespace GuardModel {
  export type IApi = Crashes.IApi & Pick<GuardApi, 'status'>;
  export type IStream = Pick<GuardStream, 'start' | 'watch' | 'reopen' | 'dispose'> & {
    readonly message: ISignal<unknown, StreamMessage>;
    readonly connectionChanged: ISignal<unknown, boolean>;
  };
}
