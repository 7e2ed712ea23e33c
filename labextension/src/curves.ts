/** What the page keeps of one kernel over time: its memory, what it held of each card, and marks of what it did. */
import { KEPT_SECONDS, Series } from './series';
import type { Gpus, History, Mark } from './wire';

export class KernelCurves {
  readonly series = new Series();

  /** What the kernel held of each card, by the card's UUID. */
  readonly gpuSeries = new Map<string, Series>();

  get marks(): readonly Mark[] {
    return this._marks;
  }

  /** Another kernel comes. */
  clear(): void {
    this.series.clear();
    this.gpuSeries.clear();
    this._marks = [];
  }

  /** Put what the server remembers before what is there. */
  prepend(history: History): void {
    this.series.prepend(history.rows);
    for (const [uuid, rows] of history.gpu_rows ?? []) {
      this._seriesOf(uuid).prepend(rows);
    }
    this._marks = history.marks;
  }

  /** Add a sample. `isOther`: of another process under the same id, which is a restart. */
  push(time: number, bytes: number | null, isOther: boolean): void {
    const { end } = this.series;
    if (isOther && end !== null) {
      // The line of the old one ends here.
      this.series.push((end + time) / 2, null);
    }
    this.series.push(time, bytes);
  }

  /** Add what the kernel holds of each card now; a card that it left holds nothing of it. */
  pushGpus(time: number, { devices }: Gpus): void {
    for (const { gpu_uuid, holders } of devices) {
      const own = holders?.find(holder => holder.is_this);
      if (own !== undefined || this.gpuSeries.has(gpu_uuid)) {
        this._seriesOf(gpu_uuid).push(time, own === undefined ? 0 : own.used_bytes);
      }
    }
  }

  /** Add marks that are not there yet; those that no line reaches back to are dropped. */
  addMarks(recent: readonly Mark[]): void {
    const fresh = recent.filter(
      ({ time, label }) => !this._marks.some(known => known.time === time && known.label === label)
    );
    if (fresh.length > 0) {
      const oldest = (this.series.end ?? 0) - KEPT_SECONDS;
      this._marks = [...this._marks, ...fresh]
        .filter(({ time }) => time >= oldest)
        .sort((a, b) => a.time - b.time);
    }
  }

  private _seriesOf(uuid: string): Series {
    const series = this.gpuSeries.get(uuid) ?? new Series();
    this.gpuSeries.set(uuid, series);
    return series;
  }

  private _marks: readonly Mark[] = [];
}
