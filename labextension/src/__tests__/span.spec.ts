// @vitest-environment node
import { describe, expect, it } from 'vitest';

import { eventKind } from '../chart/eventKinds';
import { known, nearest, shifted, zoomed } from '../chart/span';

describe('zoomed', () => {
  it('halves the span around the cursor, which stays where it is', () => {
    expect(zoomed([0, 100], [0, 100], 0.5, 80)).toEqual([40, 90]);
    expect(zoomed([0, 100], [0, 100], 0.5)).toEqual([25, 75]);
  });

  it('stays within the whole, and is null once it is all of it', () => {
    expect(zoomed([0, 40], [0, 100], 2, 0)).toEqual([0, 80]);
    expect(zoomed([60, 100], [0, 100], 2, 100)).toEqual([20, 100]);
    expect(zoomed([0, 80], [0, 100], 2)).toBeNull();
  });

  it('does not go below half a second', () => {
    expect(zoomed([10, 10.5], [0, 100], 0.5)).toEqual([10, 10.5]);
  });
});

describe('shifted', () => {
  it('brings a moment into view without changing the length', () => {
    expect(shifted([10, 20], 5)).toEqual([5, 15]);
    expect(shifted([10, 20], 22)).toEqual([12, 22]);
  });
});

describe('known', () => {
  it('is the newest value until there, and nothing in a gap', () => {
    expect(known([1, undefined, 3], 1)).toBe(1);
    expect(known([1, null, undefined], 2)).toBeNull();
    expect(known([undefined, 2], 0)).toBeNull();
  });
});

describe('nearest', () => {
  it('finds the nearest within reach', () => {
    const moments = [{ time: 1 }, { time: 5 }, { time: 6 }];
    expect(nearest(moments, 5.4, 2)).toBe(moments[1]);
    expect(nearest(moments, 3, 1)).toBeNull();
  });
});

describe('eventKind', () => {
  it('distinguishes kinds by sign or height; an unknown kind is a plain tick', () => {
    const kinds = [
      'cell',
      'fit',
      'epoch',
      'checkpoint',
      'warning',
      'gpu_oom',
      'memory_stop',
      'hang'
    ];
    expect(new Set(kinds.map(kind => eventKind(kind).sign)).size).toBe(kinds.length);
    expect(eventKind('tomorrow')).toBe(eventKind(undefined));
    expect(eventKind('constructor').sign).toBe('');
  });
});
