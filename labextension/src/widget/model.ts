/** What a panel in a notebook knows of its kernel. */
import { Series } from '../series';
import type { Mark } from '../wire';

import type { News, PanelState, Rows } from './state';

export class PanelModel {
  constructor(state: PanelState, rows: Rows) {
    this._series.prepend(rows);
    this._take(state);
    // Its own clock tells when it was written: a notebook that was saved shows an old one.
    this._heard = state.time * 1000;
  }

  get state(): PanelState {
    return this._state;
  }

  get series(): Series {
    return this._series;
  }

  get marks(): readonly Mark[] {
    return this._state.marks;
  }

  /** The guard was unloaded: nothing will come any more. */
  get isEnded(): boolean {
    return this._isEnded;
  }

  /** Seconds since the kernel last told something. */
  silentSeconds(now: number): number {
    return Math.max(0, (now - this._heard) / 1000);
  }

  /** Take one message. */
  take(news: News, now: number): void {
    this._heard = now;
    switch (news.type) {
      case 'state':
        this._take(news.state);
        break;
      case 'history':
        this._series.prepend(news.rows);
        break;
      case 'ended':
        this._isEnded = true;
        break;
      case 'other':
        break;
    }
  }

  private _take(state: PanelState): void {
    this._state = state;
    const { host, time } = state;
    if (host.used_bytes !== null) {
      this._series.push(host.time ?? time, host.used_bytes);
    }
  }

  private readonly _series = new Series();
  private _state!: PanelState;
  private _heard: number;
  private _isEnded = false;
}
