/** A dashed line in the warning color that continues the measured one. */
import uPlot from 'uplot';

/** Two points: time and value. */
export interface ISegment {
  readonly from: readonly [number, number];
  readonly to: readonly [number, number];
}

export function drawForecast(chart: uPlot, { from, to }: ISegment, colour: string): void {
  const { ctx } = chart;
  const unit = uPlot.pxRatio;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.6 * unit;
  ctx.setLineDash([4 * unit, 3 * unit]);
  ctx.beginPath();
  ctx.moveTo(chart.valToPos(from[0], 'x', true), chart.valToPos(from[1], 'y', true));
  ctx.lineTo(chart.valToPos(to[0], 'x', true), chart.valToPos(to[1], 'y', true));
  ctx.stroke();
  ctx.restore();
}
