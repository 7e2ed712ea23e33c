/** State of a panel in a notebook: the counterpart of `kernel/panel/panel_state.py`. A sample is `tests/wire/widget.json`. */
import { isNearStop } from '../live/memory';
import { Series } from '../series';
import type { Guard, Host, Mark, Row, TensorFlowMemory, Training } from '../wire';

/** A TensorFlow allocator. The kernel itself has no other data about a GPU. */
export type Allocator = Omit<TensorFlowMemory, 'gpu_uuid'>;

export type PanelState = Readonly<{
  time: number;
  notebook: string | null;
  busy: boolean;
  host: Host;
  training: Training | null;
  marks: Mark[];
  gpu: Allocator[];
  guard: Guard;
}>;

/** One message of the kernel. A newer kernel may send other types; they are ignored. */
export type News =
  | { readonly type: 'state'; readonly state: PanelState }
  | { readonly type: 'history'; readonly rows: Row[] }
  | { readonly type: 'ended' };

export class PanelModel {
  constructor(state: PanelState, rows: Row[]) {
    this._series.prepend(rows);
    this._take(state);
    // The state has its own time: a saved notebook shows an old state.
    this._heard = state.time * 1000;
  }

  get state(): PanelState {
    return this._state;
  }

  get series(): Series {
    return this._series;
  }

  /** Whether memory is near the threshold at which the guard stops the cell. */
  get isNearStop(): boolean {
    return this._isNearStop;
  }

  /** The guard was unloaded: no more messages will arrive. */
  get isEnded(): boolean {
    return this._isEnded;
  }

  /** Seconds since the last message of the kernel. */
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
    }
  }

  private _take(state: PanelState): void {
    this._state = state;
    const { guard, host, time } = state;
    // A saved notebook may have a state of an older version.
    this._isNearStop = isNearStop(host, guard.stop ?? null, this._isNearStop);
    if (host.used_bytes !== null) {
      this._series.push(host.time ?? time, host.used_bytes);
    }
  }

  private readonly _series = new Series();
  private _state!: PanelState;
  private _heard: number;
  private _isEnded = false;
  private _isNearStop = false;
}
