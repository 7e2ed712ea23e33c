/** When the status is read again: no stream tells tfguard's own problems, nor why it is not let in. */
import type { IView } from './watching';

const WHILE_AWAY_MS = 20_000;
const WHILE_SEEN_MS = 60_000;

/** One who opens and closes the panel again and again causes no more than this. */
const SHORTEST_MS = 5_000;

export class Asking {
  setView({ isPageVisible, isPanelVisible }: IView): void {
    const wasSeen = this._isSeen;
    this._isPageVisible = isPageVisible;
    this._isSeen = isPageVisible && isPanelVisible;
    if (this._isSeen && !wasSeen && Date.now() - this._last >= SHORTEST_MS) {
      this._isOpened = true;
    }
  }

  /** Read the status by `read`; its failures are the caller's. */
  async during(read: () => Promise<void>): Promise<void> {
    this._last = Date.now();
    this._isOpened = false;
    this._underWay += 1;
    try {
      await read();
    } finally {
      this._underWay -= 1;
    }
  }

  /** Whether it is time. `isOk`: the server is heard. */
  isDue(isOk: boolean): boolean {
    const passed = Date.now() - this._last;
    if (this._underWay > 0 || !this._isPageVisible) {
      return false;
    }
    return isOk
      ? this._isSeen && (this._isOpened || passed >= WHILE_SEEN_MS)
      : passed >= WHILE_AWAY_MS;
  }

  private _isOpened = false;
  private _isPageVisible = false;
  private _isSeen = false;
  private _last = -Infinity;
  private _underWay = 0;
}
