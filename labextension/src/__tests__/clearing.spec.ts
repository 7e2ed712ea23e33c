import { describe, expect, it } from 'vitest';

import { clearHeight } from '../chart/clearing';
import type { Path } from '../chart/clearing';

const BOX = { left: 60, right: 100, above: 10, below: 3 };
const HEIGHTS = [50, 30, 80] as const;

function height(...paths: Path[]): number {
  return clearHeight(paths, BOX, HEIGHTS);
}

describe('clearHeight', () => {
  it('takes the first height where no line comes near', () => {
    expect(height()).toBe(50);
    expect(
      height([
        [0, 45],
        [55, 45]
      ])
    ).toBe(50);
    expect(
      height([
        [0, 45],
        [100, 45]
      ])
    ).toBe(30);
    expect(
      height(
        [
          [0, 52],
          [70, 52]
        ],
        [
          [90, 25],
          [100, 25]
        ]
      )
    ).toBe(80);
  });

  it('sees a line that rises through the name between two corners', () => {
    expect(
      height([
        [0, 80],
        [160, 0]
      ])
    ).toBe(80);
    expect(
      height([
        [0, 200],
        [59, 99],
        [101, 99]
      ])
    ).toBe(50);
    expect(
      height([
        [70, 90],
        [70, 40]
      ])
    ).toBe(30);
  });

  it('takes a gap for a gap', () => {
    expect(height([[0, 45], null, [100, 45]])).toBe(50);
  });

  it('takes the first of all where each is crossed', () => {
    expect(
      height([
        [70, 0],
        [80, 100]
      ])
    ).toBe(50);
  });
});
