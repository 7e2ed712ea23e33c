/** Range and ticks of the axes. */

/** The vertical axis: from 0 to `top`, with `ticks`; whether the limit is inside its range. */
export interface IValueAxis {
  readonly top: number;
  readonly ticks: readonly number[];
  readonly showsLimit: boolean;
}

/** Space above the highest line for its label. */
const HEADROOM_PIXELS = 16;

/** If the curve is below this fraction of the limit, leave the limit out, else the curve would be flat. */
const SMALLEST_SHARE = 1 / 8;

const MEBIBYTE = 2 ** 20;

/** An axis for bytes, `pixels` long. Tick steps are powers of two, which are round in binary units. */
export function valueAxis(
  values: readonly (number | null)[],
  limit: number | null,
  pixels: number
): IValueAxis {
  let peak = 0;
  for (const value of values) {
    if (value !== null && value > peak) {
      peak = value;
    }
  }
  const showsLimit = limit !== null && (peak >= limit * SMALLEST_SHARE || peak === 0);
  const highest = showsLimit ? Math.max(peak, limit) : Math.max(peak, MEBIBYTE);
  const top = (highest * pixels) / (pixels - HEADROOM_PIXELS);
  const step = 2 ** Math.ceil(Math.log2(highest / 4));
  const ticks: number[] = [];
  for (let tick = 0; tick <= highest * 1.001; tick += step) {
    ticks.push(tick);
  }
  return { top, ticks, showsLimit };
}

const TIME_STEPS_SECONDS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400
];

/** Times between `from` and `to` with a round step, at most `most` of them. */
export function timeTicks(from: number, to: number, most: number): number[] {
  const span = to - from;
  if (!(span > 0)) {
    return [];
  }
  const step =
    TIME_STEPS_SECONDS.find(seconds => span / seconds <= most) ??
    Math.ceil(span / most / 86_400) * 86_400;
  const ticks: number[] = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) {
    ticks.push(tick);
  }
  return ticks;
}
