/**
 * A line over time with a limit, marks and an end: uPlot, plus what it lacks here, which is colours
 * from CSS variables, a text for screen readers, a cursor for the keyboard, and drawing only what
 * is seen. Imports nothing from JupyterLab, so that a notebook widget can use it as well.
 */
import uPlot from 'uplot';

import { timeTicks, valueAxis } from './axis';
import type { IValueAxis } from './axis';
import { decimate } from './decimate';
import type { IPoints } from './decimate';
import { drawOverlay } from './overlay';
import type { ILevel, IMoment } from './overlay';
import { onThemeChange, readPalette } from './theme';
import type { IPalette } from './theme';

/** What to draw. */
export interface IChartData {
  readonly points: IPoints;
  /** First and last moment of the axis. */
  readonly range: readonly [number, number];
  readonly limit: ILevel | null;
  readonly marks: readonly IMoment[];
  readonly end: IMoment | null;
  /** The whole picture in one sentence, for those who do not see it. */
  readonly description: string;
}

/** How to draw; stays the same while the chart lives. */
export interface IChartOptions {
  readonly height: number;
  /** Whether dragging zooms into a span of time; a double click shows all again. */
  readonly canZoom: boolean;
  readonly formatValue: (value: number) => string;
  /** A value beside the axis: as short as it can be. */
  readonly formatTick: (value: number) => string;
  readonly formatTime: (seconds: number) => string;
  /** Labels at the two ends of the axis instead of the time of day. */
  readonly endLabels: readonly [string, string] | null;
}

const DESCRIPTION_EVERY_MS = 2_000;
const VALUE_AXIS_PIXELS = 52;
const TIME_AXIS_PIXELS = 20;
const LABEL_PIXELS = 110;

export class TimeChart {
  constructor(
    private readonly _host: HTMLElement,
    private readonly _options: IChartOptions
  ) {
    _host.classList.add('jp-TfGuard-Chart');
    _host.setAttribute('role', 'img');
    _host.tabIndex = 0;
    _host.style.height = `${_options.height}px`;
    this._readout.className = 'jp-TfGuard-Chart-readout';
    _host.appendChild(this._readout);
    _host.addEventListener('keydown', this._onKey);
    _host.addEventListener('blur', this._hideCursor);
    this._seen = new IntersectionObserver(entries => {
      this._isSeen = entries.some(entry => entry.isIntersecting);
      this._schedule();
    });
    this._seen.observe(_host);
    this._sized = new ResizeObserver(() => this._schedule());
    this._sized.observe(_host);
    document.addEventListener('visibilitychange', this._schedule);
    this._endTheme = onThemeChange(() => {
      this._palette = null;
      this._schedule();
    });
  }

  /** Show this from the next frame on. */
  update(data: IChartData): void {
    this._data = data;
    this._describe(data.description);
    this._schedule();
  }

  dispose(): void {
    cancelAnimationFrame(this._frame);
    this._frame = 0;
    this._seen.disconnect();
    this._sized.disconnect();
    this._endTheme();
    document.removeEventListener('visibilitychange', this._schedule);
    this._host.removeEventListener('keydown', this._onKey);
    this._host.removeEventListener('blur', this._hideCursor);
    this._chart?.destroy();
    this._chart = null;
    this._data = null;
    this._readout.remove();
  }

  private readonly _schedule = (): void => {
    if (this._frame !== 0 || this._data === null || !this._isSeen || document.hidden) {
      return;
    }
    this._frame = requestAnimationFrame(() => {
      this._frame = 0;
      this._draw();
    });
  };

  private _draw(): void {
    const width = this._host.clientWidth;
    const data = this._data;
    if (data === null || width === 0) {
      return;
    }
    this._palette ??= readPalette(this._host);
    this._axis = valueAxis(data.points.values, data.limit?.value ?? null);
    const points = decimate(data.points, width);
    const columns: uPlot.AlignedData = [[...points.times], [...points.values]];
    const chart = (this._chart ??= this._create(width, this._palette));
    if (chart.width !== width) {
      chart.setSize({ width, height: this._options.height });
    }
    // A new size or theme keeps the span that the user zoomed into; new data shows all of itself.
    const { min, max } = this._drawn === data ? chart.scales.x : { min: null, max: null };
    this._drawn = data;
    chart.batch(() => {
      chart.setData(columns, false);
      chart.setScale('x', { min: min ?? data.range[0], max: max ?? data.range[1] });
      chart.setScale('y', { min: 0, max: this._axis.top });
    });
  }

  private _create(width: number, palette: IPalette): uPlot {
    const { canZoom, endLabels, formatTick, formatTime, height } = this._options;
    const font = `11px ${palette.font}`;
    const text = (): string => this._palette?.text ?? palette.text;
    const grid = (): string => this._palette?.grid ?? palette.grid;
    return new uPlot(
      {
        width,
        height,
        padding: [4, endLabels === null ? 28 : 14, 0, 0],
        legend: { show: false },
        cursor: {
          y: false,
          points: { size: 7, fill: () => this._palette?.line ?? palette.line },
          drag: { x: canZoom, y: false, setScale: canZoom }
        },
        scales: { x: { time: false }, y: { range: () => [0, this._axis.top] } },
        series: [
          {},
          {
            width: 1.6,
            points: { show: false },
            stroke: () => this._palette?.line ?? palette.line,
            fill: () => this._palette?.fill ?? palette.fill
          }
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
                : [min, max],
            values: (_chart, splits) =>
              endLabels === null ? splits.map(formatTime) : [...endLabels]
          },
          {
            font,
            size: VALUE_AXIS_PIXELS,
            gap: 4,
            stroke: text,
            grid: { stroke: grid, width: 1 },
            ticks: { show: false },
            splits: () => [...this._axis.ticks],
            values: (_chart, splits) => splits.map(formatTick)
          }
        ],
        hooks: {
          draw: [chart => this._drawOverlay(chart)],
          setCursor: [chart => this._showReadout(chart)]
        }
      },
      [[], []],
      this._host
    );
  }

  private _drawOverlay(chart: uPlot): void {
    const data = this._data;
    if (data !== null && this._palette !== null) {
      const { limit, marks, end } = data;
      drawOverlay(chart, { limit, showsLimit: this._axis.showsLimit, marks, end }, this._palette);
    }
  }

  private _showReadout(chart: uPlot): void {
    const index = chart.cursor.idx ?? null;
    const time = index === null ? undefined : chart.data[0][index];
    const value = index === null ? undefined : chart.data[1]?.[index];
    this._readout.textContent =
      typeof time === 'number' && typeof value === 'number'
        ? `${this._options.formatTime(time)} · ${this._options.formatValue(value)}`
        : '';
  }

  /** Renewed every two seconds at most: a screen reader that follows must be able to finish. */
  private _describe(text: string): void {
    const now = Date.now();
    if (now - this._described >= DESCRIPTION_EVERY_MS) {
      this._described = now;
      this._host.setAttribute('aria-label', text);
    }
  }

  private readonly _onKey = (event: KeyboardEvent): void => {
    const chart = this._chart;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (chart === null || (step === undefined && event.key !== 'Escape')) {
      return;
    }
    if (step === undefined) {
      this._hideCursor();
      return;
    }
    event.preventDefault();
    const last = chart.data[0].length - 1;
    const index = Math.min(last, Math.max(0, (chart.cursor.idx ?? last) + step));
    const time = chart.data[0][index];
    if (time !== undefined) {
      chart.setCursor({ left: chart.valToPos(time, 'x'), top: 0 });
    }
  };

  private readonly _hideCursor = (): void => {
    this._chart?.setCursor({ left: -10, top: -10 });
  };

  private readonly _readout = document.createElement('span');
  private readonly _seen: IntersectionObserver;
  private readonly _sized: ResizeObserver;
  private readonly _endTheme: () => void;
  private _axis: IValueAxis = valueAxis([], null);
  private _chart: uPlot | null = null;
  private _data: IChartData | null = null;
  private _drawn: IChartData | null = null;
  private _described = -Infinity;
  private _frame = 0;
  private _isSeen = false;
  private _palette: IPalette | null = null;
}
