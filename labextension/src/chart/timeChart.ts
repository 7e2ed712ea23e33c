/**
 * A time chart with lines, a limit, marks and an end. Adds to uPlot: colors from CSS variables, a description for screen
 * readers, a keyboard cursor, and drawing only while visible. Imports nothing from JupyterLab, so that a notebook widget
 * can use it too.
 */
import uPlot from 'uplot';

import type { IDrawing } from '../parts/dom';

import { valueAxis } from './axis';
import type { IValueAxis } from './axis';
import { drawForecast } from './forecast';
import type { ISegment } from './forecast';
import { drawOverlay } from './overlay';
import type { ILevel, IMoment } from './overlay';
import { makePlot, plotPixels } from './plot';
import type { IChartOptions } from './plot';
import { known, nearest, shifted, zoomed } from './span';
import type { Span } from './span';
import { onThemeChange, readPalette } from './theme';
import type { IPalette } from './theme';

/** Times and values; null means unknown and interrupts the line. */
export interface IPoints {
  readonly times: readonly number[];
  readonly values: readonly (number | null)[];
}

/** Data of a chart. */
export interface IChartData {
  readonly points: IPoints;
  /** Start and end of the axis. */
  readonly range: Span;
  /** The visible part; all of it if left out. */
  readonly zoom?: Span | null;
  /** Dashed lines after the first one; their number must not change. */
  readonly lines?: readonly IPoints[];
  readonly limit: ILevel | null;
  readonly marks: readonly IMoment[];
  readonly end: IMoment | null;
  /** Expected continuation of the line. */
  readonly forecast?: ISegment | null;
  /** Position of the second end label, if not at the end. */
  readonly now?: number;
  /** The chart in one sentence, for screen readers. */
  readonly description: string;
}

const DESCRIPTION_EVERY_MS = 2_000;
const SMALLEST_DRAG_PIXELS = 4;
/** The readout names an event within this distance of the cursor. */
const EVENT_PIXELS = 8;

export class TimeChart implements IDrawing<IChartData> {
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
    _host.addEventListener('pointermove', this._leaveToMouse);
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

  /** Show this data from the next frame on. */
  draw(data: IChartData): void {
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
    this._host.removeEventListener('pointermove', this._leaveToMouse);
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
    const all = [data.points, ...(data.lines ?? [])];
    const values = all.flatMap(line => line.values);
    this._axis = valueAxis(values, data.limit?.value ?? null, plotPixels(this._options.height));
    const tables = all.map(({ times, values }): uPlot.AlignedData => [[...times], [...values]]);
    const columns = tables.length === 1 ? tables[0] : uPlot.join(tables);
    const chart = (this._chart ??= this._create(width, this._palette));
    if (chart.width !== width) {
      chart.setSize({ width, height: this._options.height });
    }
    const [min, max] = data.zoom ?? data.range;
    chart.batch(() => {
      chart.setData(columns, false);
      chart.setScale('x', { min, max });
      chart.setScale('y', { min: 0, max: this._axis.top });
    });
    this._placeCursor(chart);
  }

  private _create(width: number, palette: IPalette): uPlot {
    return makePlot(this._host, width, this._options, {
      axis: () => this._axis,
      draw: chart => this._drawOverlay(chart),
      linesCount: this._data?.lines?.length ?? 0,
      now: () => this._data?.now,
      palette: () => this._palette ?? palette,
      select: chart => this._select(chart),
      showAll: () => this._zoom(null),
      showCursor: chart => this._showReadout(chart)
    });
  }

  private _drawOverlay(chart: uPlot): void {
    const data = this._data;
    if (data !== null && this._palette !== null) {
      const { limit, marks, end } = data;
      if (data.forecast) {
        drawForecast(chart, data.forecast, this._palette.forecast);
      }
      drawOverlay(chart, { limit, showsLimit: this._axis.showsLimit, marks, end }, this._palette);
    }
  }

  private _showReadout(chart: uPlot): void {
    const index = chart.cursor.idx ?? null;
    const time = index === null ? undefined : chart.data[0][index];
    if (index === null || time === undefined) {
      this._readout.textContent = '';
      return;
    }
    const { formatTime, formatValue } = this._options;
    const values = chart.data.slice(1).map(column => known(column, index));
    const event = nearest(
      this._data?.marks ?? [],
      time,
      chart.posToVal(EVENT_PIXELS, 'x') - chart.posToVal(0, 'x')
    );
    this._readout.textContent = [
      formatTime(time),
      ...values.flatMap(value => (value === null ? [] : [formatValue(value)])),
      ...(event === null ? [] : [event.label])
    ].join(' · ');
  }

  private _select(chart: uPlot): void {
    const { left, width } = chart.select;
    if (width > SMALLEST_DRAG_PIXELS) {
      this._zoom([chart.posToVal(left, 'x'), chart.posToVal(left + width, 'x')]);
    }
    if (width > 0) {
      chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    }
  }

  private _zoom(span: Span | null): void {
    this._options.onZoom?.(span);
  }

  /** Update the description every two seconds at most, so that a screen reader can finish. */
  private _describe(text: string): void {
    const now = Date.now();
    if (now - this._described >= DESCRIPTION_EVERY_MS) {
      this._described = now;
      this._host.setAttribute('aria-label', text);
    }
  }

  private readonly _onKey = (event: KeyboardEvent): void => {
    const { _chart: chart, _data: data } = this;
    if (chart === null || data === null || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const span = data.zoom ?? data.range;
    const canZoom = this._options.onZoom !== undefined;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const factor = { '+': 0.5, '=': 0.5, '-': 2 }[event.key];
    if (step !== undefined) {
      this._moveCursor(chart, step, span);
    } else if (canZoom && factor !== undefined) {
      const time = this._cursorTime ?? chart.data[0][chart.cursor.idx ?? -1];
      this._zoom(zoomed(span, data.range, factor, time));
    } else if (event.key === 'Escape' || (canZoom && event.key === '0')) {
      this._hideCursor();
      this._zoom(null);
    } else {
      return;
    }
    event.preventDefault();
  };

  /** Move to the next sample; scroll if it is outside the visible part. */
  private _moveCursor(chart: uPlot, step: number, span: Span): void {
    const times = chart.data[0];
    const last = times.length - 1;
    const now = this._cursorTime === null ? null : chart.valToIdx(this._cursorTime);
    const time = times[Math.min(last, Math.max(0, (now ?? chart.cursor.idx ?? last) + step))];
    if (time === undefined) {
      return;
    }
    this._cursorTime = time;
    if (time < span[0] || time > span[1]) {
      this._zoom(shifted(span, time));
    } else {
      this._placeCursor(chart);
    }
  }

  /** Restore the keyboard cursor, for example after the axis has changed. */
  private _placeCursor(chart: uPlot): void {
    if (this._cursorTime !== null) {
      chart.setCursor({ left: chart.valToPos(this._cursorTime, 'x'), top: 0 });
    }
  }

  private readonly _leaveToMouse = (): void => {
    this._cursorTime = null;
  };

  private readonly _hideCursor = (): void => {
    this._cursorTime = null;
    this._chart?.setCursor({ left: -10, top: -10 });
  };

  private readonly _readout = document.createElement('span');
  private readonly _seen: IntersectionObserver;
  private readonly _sized: ResizeObserver;
  private readonly _endTheme: () => void;
  private _axis: IValueAxis = { top: 1, ticks: [], showsLimit: false };
  private _chart: uPlot | null = null;
  /** Time of the keyboard cursor; null while the mouse controls it. */
  private _cursorTime: number | null = null;
  private _data: IChartData | null = null;
  private _described = -Infinity;
  private _frame = 0;
  private _isSeen = false;
  private _palette: IPalette | null = null;
}
