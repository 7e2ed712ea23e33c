/** What stands in a chart beside its line: the limit, marks of cells, the moment of death. */
import uPlot from 'uplot';

import type { IPalette } from './theme';

/** A moment with a name. */
export interface IMoment {
  readonly time: number;
  readonly label: string;
}

/** A height with a name. */
export interface ILevel {
  readonly value: number;
  readonly label: string;
}

export interface IOverlay {
  readonly limit: ILevel | null;
  /** Whether the limit lies on the axis; else only its name is written, at the top. */
  readonly showsLimit: boolean;
  readonly marks: readonly IMoment[];
  readonly end: IMoment | null;
}

const TEXT_PIXELS = 11;
const MARK_PIXELS = 7;

/** Paint the overlay on a chart whose line is done. Lengths are CSS pixels times the device's ratio. */
export function drawOverlay(chart: uPlot, overlay: IOverlay, palette: IPalette): void {
  const { ctx } = chart;
  const unit = uPlot.pxRatio;
  ctx.save();
  ctx.font = `${TEXT_PIXELS * unit}px ${palette.font}`;
  ctx.textBaseline = 'alphabetic';
  ctx.lineJoin = 'round';
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

/** A name is left out where it would touch the one before it. */
function drawMarks(chart: uPlot, marks: readonly IMoment[], palette: IPalette, unit: number): void {
  const { left, top, width, height } = chart.bbox;
  const floor = top + height;
  let free = left;
  for (const mark of marks) {
    const x = chart.valToPos(mark.time, 'x', true);
    if (x < left || x > left + width) {
      continue;
    }
    stroke(chart, x, floor - MARK_PIXELS * unit, x, floor, palette.mark, unit);
    const textStart = x + 3 * unit;
    const textEnd = textStart + chart.ctx.measureText(mark.label).width;
    if (textStart >= free && textEnd <= left + width) {
      write(chart, mark.label, textStart, floor - (MARK_PIXELS + 3) * unit, palette.text, palette);
      free = textEnd + 6 * unit;
    }
  }
}

function drawEnd(chart: uPlot, end: IMoment, palette: IPalette, unit: number): void {
  const { left, top, width, height } = chart.bbox;
  const x = chart.valToPos(end.time, 'x', true);
  if (x < left || x > left + width + unit) {
    return;
  }
  stroke(chart, x, top, x, top + height, palette.limit, 1.5 * unit);
  const start = x - 5 * unit - chart.ctx.measureText(end.label).width;
  write(chart, end.label, Math.max(left, start), top + height * 0.3, palette.limit, palette);
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

/** Text with a rim of the background, so that it reads across lines. */
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
