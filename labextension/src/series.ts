/** The latest samples of one kernel, oldest first. */
import type { IPoints } from './chart/timeChart';

/** Length of the curves in the panel. */
export const KEPT_SECONDS = 600;

/** If a sample is older than the last one by more than this, the clock was set back. */
const STEP_BACK_SECONDS = 5;

/** A change smaller than this in both directions is less than about one pixel. */
const SMALL_SECONDS = 0.9;
const SMALL_FRACTION = 0.008;

export class Series implements IPoints {
  /** Increases with each visible change. Changes only when samples are added, never while they are read. */
  get version(): number {
    return this._version;
  }

  get times(): readonly number[] {
    return this._times;
  }

  /** Bytes in use at each time; null interrupts the line. */
  get values(): readonly (number | null)[] {
    return this._values;
  }

  /** The newest time, or null if there is none. */
  get end(): number | null {
    return this._times[this._times.length - 1] ?? null;
  }

  clear(): void {
    this._times = [];
    this._values = [];
    this._shown = null;
    this._version += 1;
  }

  /**
   * Add one sample. Ignore a sample that is not newer than the last one. If the clock was set back, restart the
   * series.
   */
  push(time: number, value: number | null): void {
    const last = this.end;
    if (last !== null && time < last - STEP_BACK_SECONDS) {
      this.clear();
    } else if (last !== null && time <= last) {
      return;
    }
    this._times.push(time);
    this._values.push(value);
    const old = this._times.findIndex(kept => kept >= time - KEPT_SECONDS);
    if (old > 0) {
      this._times.splice(0, old);
      this._values.splice(0, old);
    }
    if (this._shown === null || isVisible(this._shown, [time, value])) {
      this._shown = [time, value];
      this._version += 1;
    }
  }

  /** Insert older samples at the start. */
  prepend(rows: readonly (readonly [number, number | null])[]): void {
    const times = this._times;
    const values = this._values;
    this.clear();
    for (const [time, value] of rows) {
      this.push(time, value);
    }
    const from = this.end ?? -Infinity;
    const until = (this.end ?? Infinity) + STEP_BACK_SECONDS;
    times.forEach((time, index) => {
      // Later samples were taken before the clock was set back.
      if (time > from && time <= until) {
        this.push(time, values[index] ?? null);
      }
    });
  }

  private _times: number[] = [];
  private _values: (number | null)[] = [];
  /** The sample at which the version last changed. */
  private _shown: Sample | null = null;
  private _version = 0;
}

type Sample = readonly [time: number, value: number | null];

function isVisible([oldTime, oldValue]: Sample, [time, value]: Sample): boolean {
  return (
    time - oldTime >= SMALL_SECONDS ||
    (value === null) !== (oldValue === null) ||
    Math.abs((value ?? 0) - (oldValue ?? 0)) > SMALL_FRACTION * Math.max(value ?? 0, oldValue ?? 0)
  );
}
