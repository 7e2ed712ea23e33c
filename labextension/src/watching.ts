/** What is asked of the stream, which is no more than what is seen; and whether its answers have ended. */
import type { GuardStream } from './stream';

/** What of this page the user can see, and how fast it should move. */
export interface IView {
  readonly isPageVisible: boolean;
  readonly isPanelVisible: boolean;
  /** Whether something outside of the panel follows the memory: status bar, warning. */
  readonly isFollowed: boolean;
  readonly rateHertz: number;
  readonly chartHertz: number;
}

const SILENT_AFTER_MS = 10_000;

export class Watching {
  constructor(private readonly _stream: Pick<GuardStream, 'watch' | 'reopen'>) {}

  /** When the last numbers came, Unix milliseconds; null before the first. */
  get lastHeard(): number | null {
    return this._lastHeard;
  }

  setKernel(kernelId: string | null): void {
    this._kernelId = kernelId;
    this._ask();
  }

  setView(view: IView): void {
    this._view = view;
    this._ask();
  }

  /** The socket has opened: from now on an answer is due. */
  expect(): void {
    this._since = Date.now();
  }

  /** Numbers came. */
  hear(): void {
    this._lastHeard = Date.now();
  }

  /** Open the socket anew if answers are due and none came for long; whether it was so. */
  reopenIfSilent(): boolean {
    const last = Math.max(this._lastHeard ?? 0, this._since);
    if (!this._isOn || Date.now() - last <= SILENT_AFTER_MS) {
      return false;
    }
    // As after a sleep, or behind a proxy that forgot: open, but nobody is there any more.
    this.expect();
    this._stream.reopen();
    return true;
  }

  private _ask(): void {
    const view = this._view;
    if (view === null) {
      return;
    }
    const wasOn = this._isOn;
    this._isOn = view.isPageVisible && (view.isPanelVisible || view.isFollowed);
    if (this._isOn && !wasOn) {
      this.expect();
    }
    this._stream.watch({
      kernel_id: this._kernelId,
      rate_hertz: view.rateHertz,
      chart_hertz: view.chartHertz,
      detail: view.isPanelVisible ? 'panel' : 'status',
      visible: this._isOn
    });
  }

  private _isOn = false;
  private _kernelId: string | null = null;
  private _lastHeard: number | null = null;
  private _since = 0;
  private _view: IView | null = null;
}
