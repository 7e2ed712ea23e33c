import { describe, expect, it } from 'vitest';

import { timeTicks, valueAxis } from '../chart/axis';
import { decimate } from '../chart/decimate';

const GIB = 2 ** 30;

function ramp(count: number): { times: number[]; values: (number | null)[] } {
  const times = Array.from({ length: count }, (_, index) => index);
  return { times, values: times.map(time => time) };
}

describe('decimate', () => {
  it('leaves a short line as it is', () => {
    const points = ramp(100);
    expect(decimate(points, 100)).toBe(points);
  });

  it('keeps a peak and a trough of one sample among thousands', () => {
    const points = ramp(10_000);
    points.values[5_003] = 99_999;
    points.values[7_001] = -5;
    const few = decimate(points, 200);
    expect(few.times.length).toBeLessThanOrEqual(1_000);
    expect(few.values[few.times.indexOf(5_003)]).toBe(99_999);
    expect(few.values[few.times.indexOf(7_001)]).toBe(-5);
  });

  it('keeps both ends, and times that rise', () => {
    const few = decimate(ramp(5_000), 100);
    expect(few.times[0]).toBe(0);
    expect(few.times[few.times.length - 1]).toBe(4_999);
    expect(
      few.times.every((time, index) => index === 0 || time > (few.times[index - 1] ?? 0))
    ).toBe(true);
  });

  it('keeps a gap a gap', () => {
    const points = ramp(5_000);
    points.values[2_500] = null;
    const few = decimate(points, 100);
    expect(few.values[few.times.indexOf(2_500)]).toBeNull();
  });

  it('copes with samples that all have one time, and with nothing known', () => {
    const same = { times: Array<number>(500).fill(3), values: Array<null>(500).fill(null) };
    expect(decimate(same, 10).values.every(value => value === null)).toBe(true);
  });
});

describe('valueAxis', () => {
  it('reaches above the limit, with ticks round in binary units', () => {
    const axis = valueAxis([GIB, 5.9 * GIB], 8 * GIB, 104);
    expect(axis.showsLimit).toBe(true);
    expect(axis.top).toBeGreaterThan(8 * GIB);
    expect(axis.ticks).toEqual([0, 2 * GIB, 4 * GIB, 6 * GIB, 8 * GIB]);
  });

  it('keeps room for the name of the limit above its line, in a low chart as in a high one', () => {
    for (const pixels of [60, 186]) {
      const { top } = valueAxis([GIB], 8 * GIB, pixels);
      expect(((top - 8 * GIB) / top) * pixels).toBeCloseTo(16);
    }
  });

  it('leaves a far limit outside, so that a small kernel still shows its curve', () => {
    const axis = valueAxis([0.4 * GIB], 64 * GIB, 104);
    expect(axis.showsLimit).toBe(false);
    expect(axis.top).toBeLessThan(GIB);
  });

  it('stands without any value', () => {
    const axis = valueAxis([null], null, 104);
    expect(axis.top).toBeGreaterThan(0);
    expect(axis.ticks[0]).toBe(0);
  });
});

describe('timeTicks', () => {
  it('takes round times, not more than there is room for', () => {
    expect(timeTicks(127, 247, 5)).toEqual([150, 180, 210, 240]);
    expect(timeTicks(0, 7 * 86_400, 4).length).toBeLessThanOrEqual(5);
  });

  it('has none where there is no time', () => {
    expect(timeTicks(5, 5, 4)).toEqual([]);
  });
});
