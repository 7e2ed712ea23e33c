// @vitest-environment node
import { describe, expect, it } from 'vitest';

import { timeTicks, valueAxis } from '../chart/axis';

const GIB = 2 ** 30;

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

  it('works without any value', () => {
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
