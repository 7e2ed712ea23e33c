/**
 * What the page knows: the server, the kernel that the user looks at, past deaths. Asks the server
 * for no more than what is seen, and signals each change. Draws nothing.
 */
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { GuardApi } from './api';
import { Asking } from './asking';
import { CurrentKernel } from './currentKernel';
import type { Brief, ITarget } from './currentKernel';
import { Deaths } from './deaths';
import type { Series } from './series';
import { ServerLink } from './serverLink';
import type { ServerState } from './serverLink';
import type { GuardStream } from './stream';
import { Watching } from './watching';
import type { IView } from './watching';
import type {
  CrashEntry,
  Fresh,
  GpuOom,
  Gpus,
  KernelState,
  Mark,
  OtherKernel,
  Problem,
  StreamMessage,
  Tick
} from './wire';

const HEARTBEAT_MS = 5_000;
const RETRY_MS = 15_000;

export class GuardModel implements IDisposable {
  constructor(options: { api: GuardModel.IApi; stream: GuardModel.IStream }) {
    this._api = options.api;
    this._stream = options.stream;
    this._watching = new Watching(this._stream);
    this._deaths = new Deaths(this._api);
    this._deaths.changed.connect(() => this._changed.emit());
    this._stream.message.connect(this._onMessage, this);
    this._stream.connectionChanged.connect(this._onConnectionChanged, this);
    this._stream.unreadable.connect(this._onUnreadable, this);
    this._heartbeat = setInterval(() => this._onHeartbeat(), HEARTBEAT_MS);
  }

  /** Numbers of the kernel moved, and nothing else: between two changes. */
  get moved(): ISignal<this, void> {
    return this._moved;
  }

  /** Anything below changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The list of deaths was read anew: at the start, after each reconnection, after a death. */
  get crashesRead(): ISignal<unknown, readonly CrashEntry[]> {
    return this._deaths.listRead;
  }

  get server(): ServerState {
    return this._link.state;
  }

  /** What the server said when it refused, or what could not be read; for the panel. */
  get trouble(): string | null {
    return this._link.trouble ?? this._deaths.trouble;
  }

  get target(): ITarget | null {
    return this._current.target;
  }

  /** The kernel of the target; null while nothing is known of it. */
  get kernel(): KernelState | null {
    return this._current.state;
  }

  /** The newest numbers of the target's kernel, whether or not the panel is open. */
  get brief(): Brief | null {
    return this._current.brief;
  }

  /** Whether the stream has answered for the current kernel, if only to say that it knows none. */
  get hasAnswer(): boolean {
    return this._current.hasAnswer;
  }

  get series(): Series {
    return this._current.curves.series;
  }

  /** What the kernel held of each card, by the card's UUID. */
  get gpuSeries(): ReadonlyMap<string, Series> {
    return this._current.curves.gpuSeries;
  }

  get marks(): readonly Mark[] {
    return this._current.curves.marks;
  }

  get others(): readonly OtherKernel[] {
    return this._others;
  }

  get gpus(): Gpus | null {
    return this._gpus;
  }

  /** The last time that a GPU was full and this kernel lived on; null once the user has seen it. */
  get gpuOom(): GpuOom | null {
    return this._current.gpuOom;
  }

  get problems(): readonly Problem[] {
    return this._problems;
  }

  /** Deaths, newest first; null until they were read. */
  get crashes(): readonly CrashEntry[] | null {
    return this._deaths.entries;
  }

  /** Seconds since the values shown were true, or null while they are fresh. */
  get staleSeconds(): number | null {
    const { lastHeard } = this._watching;
    return this.server === 'away' && lastHeard !== null ? (Date.now() - lastHeard) / 1000 : null;
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
    if (this.server === 'ok') {
      this._isStarted = true;
      this._stream.start();
    } else {
      this._retry = setTimeout(() => void this.start(), RETRY_MS);
    }
  }

  /** Read status and deaths anew. */
  async refresh(): Promise<void> {
    await this._asking.during(() => this._readStatus(false));
    if (this.server === 'ok') {
      await this.refreshCrashes();
    }
  }

  /** Read the list of deaths anew. A failure leaves the old list, with a word in `trouble`; then null comes back. */
  async refreshCrashes(): Promise<readonly CrashEntry[] | null> {
    return this._deaths.refresh();
  }

  /** The report with this id was opened: it is no longer news, here and on the server. */
  async markRead(id: string): Promise<void> {
    await this._deaths.markRead(id);
  }

  /** Look at another notebook. */
  setTarget(target: ITarget | null): void {
    if (this._current.setTarget(target)) {
      this._watching.setKernel(target?.kernelId ?? null);
      this._changed.emit();
    }
  }

  /** The user has seen what `gpuOom` tells: it does not come back, the next one does. */
  dismissGpuOom(): void {
    if (this._current.dismissGpuOom()) {
      this._changed.emit();
    }
  }

  setView(view: IView): void {
    this._watching.setView(view);
    this._asking.setView(view);
    this._askIfDue();
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
    this._deaths.dispose();
    this._stream.dispose();
    Signal.clearData(this);
  }

  private _onConnectionChanged(_sender: unknown, isOpen: boolean): void {
    if (!isOpen) {
      this._link.lose();
      this._changed.emit();
      return;
    }
    this._link.open();
    this._watching.expect();
    if (this._link.isBehind) {
      void this.refresh();
    }
  }

  private _onMessage(_sender: unknown, message: StreamMessage): void {
    switch (message.type) {
      case 'number':
        this._takeNumber(message.fresh);
        return;
      case 'deaths':
        this._deaths.refreshSoon();
        return;
      case 'tick':
        this._takeTick(message.tick);
        break;
      case 'history':
        this._current.takeHistory(message.history);
        break;
      case 'other':
        return;
    }
    this._changed.emit();
  }

  private _onUnreadable(_sender: unknown, what: string): void {
    this._link.misread(what);
    this._changed.emit();
  }

  private _onHeartbeat(): void {
    if (!this._watching.reopenIfSilent() && this._link.isBehind && this.server === 'ok') {
      void this.refresh();
    }
    this._askIfDue();
    if (this.server === 'away') {
      this._changed.emit();
    }
  }

  private _askIfDue(): void {
    if (this._isStarted && this._asking.isDue(this.server === 'ok')) {
      void this._asking.during(() => this._readStatus(true));
    }
  }

  /** `isCasual`: a failure is no news while the stream speaks. */
  private async _readStatus(isCasual: boolean): Promise<void> {
    try {
      const { gpus, kernels, problems } = await this._api.status();
      this._current.takeAll(kernels);
      this._problems = problems;
      this._gpus ??= gpus;
      this._link.answer();
    } catch (error) {
      if (!isCasual || this.server !== 'ok') {
        this._link.fail(error);
      }
    }
    this._changed.emit();
  }

  private _takeNumber(fresh: Fresh): void {
    this._watching.hear();
    this._current.takeNumber(fresh);
    (this._link.hear() ? this._changed : this._moved).emit();
  }

  private _takeTick(tick: Tick): void {
    this._watching.hear();
    this._link.hear();
    this._link.misread(null);
    this._others = tick.others;
    this._gpus = tick.gpus;
    this._current.takeTick(tick);
  }

  private readonly _api: GuardModel.IApi;
  private readonly _stream: GuardModel.IStream;
  private readonly _moved = new Signal<this, void>(this);
  private readonly _changed = new Signal<this, void>(this);
  private readonly _asking = new Asking();
  private readonly _current = new CurrentKernel();
  private readonly _deaths: Deaths;
  private readonly _link = new ServerLink();
  private readonly _heartbeat: ReturnType<typeof setInterval>;
  private readonly _watching: Watching;
  private _retry: ReturnType<typeof setTimeout> | null = null;
  private _others: readonly OtherKernel[] = [];
  private _gpus: Gpus | null = null;
  private _problems: readonly Problem[] = [];
  private _isDisposed = false;
  private _isStarted = false;
}

export namespace GuardModel {
  export type IApi = Deaths.IApi & Pick<GuardApi, 'status'>;
  export type IStream = Pick<GuardStream, 'start' | 'watch' | 'reopen' | 'dispose'> & {
    readonly message: ISignal<unknown, StreamMessage>;
    readonly connectionChanged: ISignal<unknown, boolean>;
    readonly unreadable: ISignal<unknown, string>;
  };
}
