/** Where in a chart a name can stand so that no line runs through it. */

/** The corners of a line in pixels, downwards; null where it is broken. */
export type Path = readonly (readonly [number, number] | null)[];

/** A name: from where to where, and how far it reaches above and below the height it is written at. */
export interface IBox {
  readonly left: number;
  readonly right: number;
  readonly above: number;
  readonly below: number;
}

/** The first of the heights at which no line crosses the box; the first of all where each is crossed. */
export function clearHeight(
  paths: readonly Path[],
  box: IBox,
  heights: readonly [number, ...number[]]
): number {
  const { left, right, above, below } = box;
  const spans = paths.flatMap(path => spansWithin(path, left, right));
  const isClear = (height: number): boolean =>
    spans.every(([top, bottom]) => bottom < height - above || top > height + below);
  return heights.find(isClear) ?? heights[0];
}

/** Between which heights each stretch of a line runs, as far as it lies between two places. */
function spansWithin(path: Path, left: number, right: number): [number, number][] {
  const spans: [number, number][] = [];
  path.forEach((to, index) => {
    const from = path[index - 1];
    if (from && to && to[0] >= left && from[0] <= right) {
      const ends = [
        heightAt(from, to, Math.max(left, from[0])),
        heightAt(from, to, Math.min(right, to[0]))
      ];
      spans.push([Math.min(...ends), Math.max(...ends)]);
    }
  });
  return spans;
}

function heightAt(
  from: readonly [number, number],
  to: readonly [number, number],
  x: number
): number {
  const width = to[0] - from[0];
  return width === 0 ? to[1] : from[1] + ((to[1] - from[1]) * (x - from[0])) / width;
}
