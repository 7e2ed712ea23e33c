/** Draws the limit, marks of cells and the end of the kernel over a chart. */
import uPlot from 'uplot';

import { eventKind } from './eventKinds';
import type { IPalette } from './theme';

/** A time with a label; `kind` as in `eventKinds.ts`, none for a plain tick. */
export interface IMoment {
  readonly time: number;
  readonly label: string;
  readonly kind?: string;
}

/** A value with a label. */
export interface ILevel {
  readonly value: number;
  readonly label: string;
}

export interface IOverlay {
  readonly limit: ILevel | null;
  /** Whether the limit is inside the axis range; if not, only its label is drawn at the top. */
  readonly showsLimit: boolean;
  readonly marks: readonly IMoment[];
  readonly end: IMoment | null;
}

const TEXT_PIXELS = 11;
const MARK_PIXELS = 7;
const HIGH_MARK_PIXELS = 22;
/** Vertical position of the end label: between the limit above and the marks below. */
const END_FRACTION = 0.3;

/** Draw the overlay after the lines. Lengths are CSS pixels times the device pixel ratio. */
export function drawOverlay(chart: uPlot, overlay: IOverlay, palette: IPalette): void {
  const { ctx } = chart;
  const unit = uPlot.pxRatio;
  ctx.save();
  ctx.font = `${TEXT_PIXELS * unit}px ${palette.font}`;
  ctx.textBaseline = 'alphabetic';
  ctx.lineJoin = 'round';
  ctx.setLineDash([]); // the last line may have been dashed
  drawMarks(chart, overlay.marks, palette, unit);
  if (overlay.limit !== null) {
    drawLimit(chart, overlay.limit, overlay.showsLimit, palette, unit);
  }
  if (overlay.end !== null) {
    drawEnd(chart, overlay.end, palette, unit);
  }
  ctx.restore();
}

function drawLimit(
  chart: uPlot,
  limit: ILevel,
  isOnAxis: boolean,
  palette: IPalette,
  unit: number
): void {
  const { left, top, width } = chart.bbox;
  if (!isOnAxis) {
    write(
      chart,
      `↑ ${limit.label}`,
      left + 3 * unit,
      top + TEXT_PIXELS * unit,
      palette.text,
      palette
    );
    return;
  }
  const y = chart.valToPos(limit.value, 'y', true);
  stroke(chart, left, y, left + width, y, palette.limit, 1.2 * unit);
  write(chart, limit.label, left + 3 * unit, y - 4 * unit, palette.limit, palette);
}

/**
 * Draw all ticks first, so that none crosses a label. A label is placed right of its tick, else left of it; if neither
 * fits, only its sign is drawn, or nothing.
 */
function drawMarks(chart: uPlot, marks: readonly IMoment[], palette: IPalette, unit: number): void {
  const { left, top, width, height } = chart.bbox;
  const floor = top + height;
  const seen = marks
    .map(({ time, label, kind }) => ({
      ...eventKind(kind),
      label,
      x: chart.valToPos(time, 'x', true)
    }))
    .filter(({ x }) => x >= left && x <= left + width)
    .map(mark => ({
      ...mark,
      tip: floor - (mark.isHigh ? HIGH_MARK_PIXELS : MARK_PIXELS) * unit,
      colour: mark.isBad ? palette.limit : palette.text
    }));
  for (const { colour, isBad, tip, x } of seen) {
    stroke(chart, x, tip, x, floor, isBad ? colour : palette.mark, unit);
  }
  const taken: { tip: number; start: number; end: number }[] = [];
  for (const { colour, label, sign, tip, x } of seen.sort((one, other) => other.rank - one.rank)) {
    const gap = (sign === '' ? 3 : -3) * unit;
    for (const [text, isLeft] of [
      [`${sign} ${label}`.trim(), false],
      [`${label} ${sign}`.trim(), true],
      [sign, false]
    ] as const) {
      const size = chart.ctx.measureText(text).width;
      const start = isLeft ? x - gap - size : x + gap;
      const end = start + size + 6 * unit;
      if (
        text !== '' &&
        start >= left &&
        end <= left + width + 10 * unit &&
        !taken.some(other => other.tip === tip && other.start < end && start < other.end)
      ) {
        write(chart, text, start, tip - 3 * unit, colour, palette);
        taken.push({ tip, start, end });
        break;
      }
    }
  }
}

/** The label is left of the line; its outline keeps it readable over a curve. */
function drawEnd(chart: uPlot, end: IMoment, palette: IPalette, unit: number): void {
  const { left, top, width, height } = chart.bbox;
  const x = chart.valToPos(end.time, 'x', true);
  if (x < left || x > left + width + unit) {
    return;
  }
  stroke(chart, x, top, x, top + height, palette.limit, 1.5 * unit);
  const start = Math.max(left, x - 5 * unit - chart.ctx.measureText(end.label).width);
  write(chart, end.label, start, top + height * END_FRACTION, palette.limit, palette);
}

function stroke(
  chart: uPlot,
  fromX: number,
  fromY: number,
  toX: number,
  toY: number,
  colour: string,
  width: number
): void {
  const { ctx } = chart;
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.beginPath();
  ctx.moveTo(fromX, fromY);
  ctx.lineTo(toX, toY);
  ctx.stroke();
}

/** Text with an outline in the background color, readable over lines. */
function write(
  chart: uPlot,
  label: string,
  x: number,
  y: number,
  colour: string,
  palette: IPalette
): void {
  const { ctx } = chart;
  ctx.textAlign = 'left';
  ctx.strokeStyle = palette.background;
  ctx.lineWidth = 3 * uPlot.pxRatio;
  ctx.strokeText(label, x, y);
  ctx.fillStyle = colour;
  ctx.fillText(label, x, y);
}
