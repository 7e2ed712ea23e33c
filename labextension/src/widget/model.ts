/** What a panel in a notebook knows of its kernel. */
import { Series } from '../series';
import type { Mark } from '../wire';

import type { News, PanelState, Rows } from './state';

/** Of messages a second: what "Go on" asks for where the kernel did not tell what it was. */
const DEFAULT_HERTZ = 4;

export class PanelModel {
  constructor(state: PanelState, rows: Rows) {
    this._series.prepend(rows);
    this._take(state);
    // Its own clock tells when it was written: a notebook that was saved shows an old one.
    this._heard = state.time * 1000;
    this._setRate(state.hertz);
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

  /** Whether the kernel sends nothing because somebody paused it. */
  get isPaused(): boolean {
    return this._isPaused;
  }

  /** The guard was unloaded: nothing will come any more. */
  get isEnded(): boolean {
    return this._isEnded;
  }

  /** Messages a second while a cell runs, also while they are paused. */
  get hertz(): number {
    return this._hertz;
  }

  /** Seconds since the kernel last told something. */
  silentSeconds(now: number): number {
    return Math.max(0, (now - this._heard) / 1000);
  }

  /** Take one message. Of those that answer a request, only what they tell of the kernel. */
  take(news: News, now: number): void {
    this._heard = now;
    switch (news.type) {
      case 'state':
        this._take(news.state);
        break;
      case 'history':
        this._series.prepend(news.rows);
        break;
      case 'rate':
        this._setRate(news.hertz);
        break;
      case 'answer':
        if (news.answer.isDone) {
          this._setRate(news.answer.hertz ?? news.answer.state?.hertz ?? null);
          if (news.answer.state !== null) {
            this._take(news.answer.state);
          }
        }
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
    if (host.rss_bytes !== null) {
      this._series.push(host.time ?? time, host.rss_bytes);
    }
  }

  private _setRate(hertz: number | null): void {
    if (hertz === null) {
      return;
    }
    this._isPaused = hertz === 0;
    if (hertz > 0) {
      this._hertz = hertz;
    }
  }

  private readonly _series = new Series();
  private _state!: PanelState;
  private _heard: number;
  private _isPaused = false;
  private _isEnded = false;
  private _hertz = DEFAULT_HERTZ;
}
