/** uPlot options of a time chart: lines, axes and cursor, with the current colors and ticks. */
import uPlot from 'uplot';

import { timeTicks } from './axis';
import type { IValueAxis } from './axis';
import type { Span } from './span';
import type { IPalette } from './theme';

/** Options that do not change during the life of a chart. */
export interface IChartOptions {
  readonly height: number;
  /** Called to zoom to a time span, null for all of it. Without it there is no zoom. */
  readonly onZoom?: (span: Span | null) => void;
  /** Charts with the same name share their cursor. */
  readonly syncName?: string;
  readonly formatValue: (value: number) => string;
  /** Formats an axis label. */
  readonly formatTick: (value: number) => string;
  readonly formatTime: (seconds: number) => string;
  /** Labels at the two ends of the axis instead of the time of day. */
  readonly endLabels: readonly [string, string] | null;
}

/** Callbacks of a plot. */
export interface IPlotOwner {
  readonly axis: () => IValueAxis;
  readonly palette: () => IPalette;
  /** Number of lines after the first one. */
  readonly linesCount: number;
  /** Position of the second end label, if not at the end. */
  readonly now: () => number | undefined;
  /** The lines are drawn. */
  readonly draw: (chart: uPlot) => void;
  readonly showCursor: (chart: uPlot) => void;
  /** The user has dragged. */
  readonly select: (chart: uPlot) => void;
  /** The user has clicked twice. */
  readonly showAll: () => void;
}

const VALUE_AXIS_PIXELS = 52;
const TIME_AXIS_PIXELS = 20;
const TOP_PIXELS = 4;
const LABEL_PIXELS = 110;
const DASHES = [
  [6, 4],
  [2, 3],
  [8, 3, 2, 3]
];

/** Height of the plotting area. */
export function plotPixels(height: number): number {
  return height - TOP_PIXELS - TIME_AXIS_PIXELS;
}

/** A plot without data. */
export function makePlot(
  host: HTMLElement,
  width: number,
  options: IChartOptions,
  owner: IPlotOwner
): uPlot {
  const { endLabels, formatTick, formatTime, height, onZoom, syncName } = options;
  const font = `11px ${owner.palette().font}`;
  const text = (): string => owner.palette().text;
  return new uPlot(
    {
      width,
      height,
      padding: [TOP_PIXELS, endLabels === null ? 28 : 14, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { size: 7, fill: () => owner.palette().line },
        drag: { x: onZoom !== undefined, y: false, setScale: false },
        bind: {
          dblclick: () => () => {
            owner.showAll();
            return null;
          }
        },
        ...(syncName === undefined ? {} : { sync: { key: syncName } })
      },
      scales: { x: { time: false }, y: { range: () => [0, owner.axis().top] } },
      series: [
        {},
        {
          width: 1.6,
          points: { show: false },
          stroke: () => owner.palette().line,
          fill: () => owner.palette().fill
        },
        ...Array.from({ length: owner.linesCount }, (_, index) => ({
          width: 1.4,
          dash: DASHES[index % DASHES.length] ?? [],
          points: { show: false },
          stroke: text
        }))
      ],
      axes: [
        {
          font,
          size: TIME_AXIS_PIXELS,
          gap: 4,
          stroke: text,
          grid: { show: false },
          ticks: { show: false },
          splits: (chart, _axis, min, max) =>
            endLabels === null
              ? timeTicks(min, max, Math.max(3, Math.floor(chart.width / LABEL_PIXELS)))
              : [min + halfOf(endLabels[0], chart), owner.now() ?? max],
          values: (_chart, splits) => (endLabels === null ? splits.map(formatTime) : [...endLabels])
        },
        {
          font,
          size: VALUE_AXIS_PIXELS,
          gap: 4,
          stroke: text,
          grid: { stroke: () => owner.palette().grid, width: 1 },
          ticks: { show: false },
          splits: () => [...owner.axis().ticks],
          values: (_chart, splits) => splits.map(formatTick)
        }
      ],
      hooks: {
        draw: [owner.draw],
        setCursor: [owner.showCursor],
        setSelect: [owner.select]
      }
    },
    [[], []],
    host
  );
}

/** Half the width of a label in units of the time axis. */
function halfOf(label: string, chart: uPlot): number {
  const pixels = chart.ctx.measureText(label).width / uPlot.pxRatio / 2;
  return chart.posToVal(pixels, 'x') - chart.posToVal(0, 'x');
}
