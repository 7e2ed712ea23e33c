// @vitest-environment node
import { describe, expect, it } from 'vitest';

import { Series } from '../series';

describe('Series', () => {
  it('ignores a sample that it has', () => {
    const series = new Series();
    series.push(1, 10);
    series.push(1, 10);
    series.push(0.5, 9);
    expect(series.times).toEqual([1]);
  });

  it('keeps ten minutes', () => {
    const series = new Series();
    for (let second = 0; second <= 700; second += 100) {
      series.push(second, second);
    }
    expect(series.times[0]).toBe(100);
    expect(series.values[0]).toBe(100);
  });

  it('puts history before what came since, once', () => {
    const series = new Series();
    series.push(10, 100);
    series.push(11, 110);
    series.prepend([
      [8, 80],
      [9, null],
      [10, 100]
    ]);
    expect(series.times).toEqual([8, 9, 10, 11]);
    expect(series.values).toEqual([80, null, 100, 110]);
  });

  it('restarts if the clock was set back, and ignores late samples', () => {
    const series = new Series();
    series.push(1000, 1);
    series.push(996, 2);
    expect(series.times).toEqual([1000]);
    series.push(400, 3);
    series.push(401, 4);
    expect(series.times).toEqual([400, 401]);
  });

  it('drops what it has of a clock that was ahead of the history', () => {
    const series = new Series();
    series.push(1000, 1);
    series.prepend([
      [400, 2],
      [401, 3]
    ]);
    expect(series.times).toEqual([400, 401]);
    series.push(402, 4);
    expect(series.times).toEqual([400, 401, 402]);
  });

  it('keeps what it has where there is no history', () => {
    const series = new Series();
    series.push(1000, 1);
    series.prepend([]);
    expect(series.times).toEqual([1000]);
  });

  it('keeps the history where what it has is much older', () => {
    const series = new Series();
    series.push(10, 1);
    series.prepend([[100, 2]]);
    expect(series.times).toEqual([100]);
  });

  it('has another version after what a chart shows, and the same after less than a pixel', () => {
    const series = new Series();
    let version = series.version;
    const isNew = (): boolean => {
      const isOther = series.version !== version;
      version = series.version;
      return isOther;
    };
    series.push(100, 1_000);
    expect(isNew()).toBe(true);
    for (const [time, value] of [
      [100.3, 1_002],
      [100.3, 2_000], // the same reading again
      [100.6, 1_007]
    ] as const) {
      series.push(time, value);
      expect(isNew()).toBe(false);
    }
    for (const [time, value] of [
      [100.7, 1_009], // more than small steps add up
      [101.7, 1_009],
      [101.8, null],
      [101.9, 1_009],
      [50, 1_009] // the clock was set back
    ] as const) {
      series.push(time, value);
      expect(isNew()).toBe(true);
    }
    series.prepend([]);
    expect(isNew()).toBe(true);
    series.clear();
    expect(isNew()).toBe(true);
  });
});
