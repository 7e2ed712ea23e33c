/**
 * Tells the kernel that this view is looked at, while it is fed: one that says so no more is fed no more
 * (`kernel/widget_views.py`). Where the kernel cannot be told while a cell runs, nothing is told.
 */

/** The kernel takes a view for gone that has been silent for three times as long. */
const EVERY_MS = 15_000;

/** Where nobody ever answered, no more is asked: there is no such way on this page. */
const TRIES = 3;

export class Presence {
  /** @param _say - tells it; true if somebody answered. */
  constructor(private readonly _say: () => Promise<boolean>) {
    document.addEventListener('visibilitychange', this.tell);
    this.tell();
  }

  /** The kernel has sent something while a cell runs. */
  fed(): void {
    if (Date.now() - this._saidAt >= EVERY_MS) {
      this.tell();
    }
  }

  /** Tell it now, if the page is shown. */
  readonly tell = (): void => {
    const isHopeless = !this._wasAnswered && this._tries >= TRIES;
    if (document.visibilityState !== 'visible' || this._isAsking || isHopeless) {
      return;
    }
    this._isAsking = true;
    this._saidAt = Date.now();
    this._tries += 1;
    void this._say().then(isAnswered => {
      this._isAsking = false;
      this._wasAnswered ||= isAnswered;
    });
  };

  dispose(): void {
    document.removeEventListener('visibilitychange', this.tell);
  }

  private _isAsking = false;
  private _saidAt = 0;
  private _tries = 0;
  private _wasAnswered = false;
}
