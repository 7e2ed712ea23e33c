import { describe, expect, it } from 'vitest';

import { Series } from '../series';

describe('Series', () => {
  it('passes over a reading that it has', () => {
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
      [8, 80, null],
      [9, null, null],
      [10, 100, null]
    ]);
    expect(series.times).toEqual([8, 9, 10, 11]);
    expect(series.values).toEqual([80, null, 100, 110]);
  });
});
