/** Fewer points than pixels, without losing a peak. */

/** Times, and values at these times; null where nothing is known, which breaks the line. */
export interface IPoints {
  readonly times: readonly number[];
  readonly values: readonly (number | null)[];
}

/**
 * Keep, for each column of equal time, its first, lowest, highest and last value, and one gap if it
 * has any. At most five points a column come back; the ends and every extreme stay where they were.
 */
export function decimate(points: IPoints, columns: number): IPoints {
  const { times, values } = points;
  const count = times.length;
  if (columns < 1 || count <= columns * 4) {
    return points;
  }
  const start = times[0] ?? 0;
  const span = (times[count - 1] ?? 0) - start || 1;
  const kept: number[] = [];
  let from = 0;
  while (from < count) {
    const column = columnOf(times[from] ?? 0, start, span, columns);
    let to = from + 1;
    while (to < count && columnOf(times[to] ?? 0, start, span, columns) === column) {
      to += 1;
    }
    kept.push(...telling(values, from, to));
    from = to;
  }
  return {
    times: kept.map(index => times[index] ?? 0),
    values: kept.map(index => values[index] ?? null)
  };
}

function columnOf(time: number, start: number, span: number, columns: number): number {
  return Math.min(columns - 1, Math.floor(((time - start) / span) * columns));
}

/** The places within [from, to) that a reader would miss, in order. */
function telling(values: readonly (number | null)[], from: number, to: number): number[] {
  let lowest = -1;
  let highest = -1;
  let gap = -1;
  for (let index = from; index < to; index += 1) {
    const value = values[index] ?? null;
    if (value === null) {
      gap = index;
      continue;
    }
    if (lowest < 0 || value < (values[lowest] ?? Infinity)) {
      lowest = index;
    }
    if (highest < 0 || value > (values[highest] ?? -Infinity)) {
      highest = index;
    }
  }
  const wanted = new Set([from, lowest, highest, gap, to - 1].filter(index => index >= 0));
  return [...wanted].sort((a, b) => a - b);
}
