/** One panel in a cell's output. */
import { onThemeChange } from '../chart/theme';
import { TimeChart } from '../chart/timeChart';
import { limitNotice } from '../live/forecastText';
import { limitText, memoryText, sharesText } from '../live/hostText';
import { memoryShares } from '../live/memory';
import { memoryChartOptions, memoryData } from '../live/memoryCurve';
import { clock, humanSpan } from '../when';

import { element, write } from '../parts/dom';
import type { PanelModel } from './model';
import { gpuSection, guardSection, stopRow, trainingSection } from './sections';
import { followHost } from './theme';
import { trans } from './words';

/** While a cell runs, the kernel sends several messages per second. Report a silence longer than this. */
const SILENT_SECONDS = 3;

export class PanelView {
  constructor(
    host: HTMLElement,
    private readonly _model: PanelModel
  ) {
    const { _root: root } = this;
    root.setAttribute('role', 'region');
    root.setAttribute('aria-label', trans.__('TF Guard'));
    this._sign.setAttribute('aria-hidden', 'true');
    const chart = element('div', '');
    const memory = element(
      'section',
      'jp-TfGuard-Section jp-TfGuard-HostMemory',
      element('div', 'jp-TfGuard-heading', trans.__('Host memory')),
      element('div', 'jp-TfGuard-row jp-mod-wrap', this._held, this._limit),
      chart,
      element('details', 'jp-TfGuard-Folded', this._shares, this._details),
      this._stop.node,
      this._near
    );
    root.append(
      element('header', 'jp-TfGuard-header', this._title, this._state),
      memory,
      this._training.node,
      this._gpu.node,
      this._guard.node,
      this._note
    );
    followHost(root);
    host.append(root);
    // The axis has times of day, because a widget stays visible after its last update.
    this._chart = new TimeChart(chart, memoryChartOptions(128, null));
    this._endTheme = onThemeChange(() => followHost(root));
    this._timer = setInterval(() => this._updateNote(), 1000);
    this.draw();
  }

  /** Show the model as it is now. */
  draw(): void {
    const { isNearStop, state } = this._model;
    const { guard, host } = state;
    const isWell = guard.problems.length === 0;
    write(this._title, state.notebook === null ? 'TF Guard' : `TF Guard · ${state.notebook}`);
    this._title.title = state.notebook ?? '';
    this._state.className = `jp-TfGuard-State jp-mod-${isWell ? 'good' : 'warning'}`;
    write(this._sign, isWell ? '●' : '▲');
    write(this._stateText, this._guardText());
    write(this._held, memoryText(host, trans));
    write(this._limit, limitText(host, trans));
    write(this._shares, sharesText(memoryShares(host, []), trans) || trans.__('this kernel'));
    write(this._details, host.details.join(' · '));
    const notice = isNearStop ? null : limitNotice(host, trans);
    this._near.hidden = notice === null;
    write(this._near, notice === null ? '' : `▲ ${notice.head} ${notice.rest}`);
    this._stop.draw({ isNear: isNearStop, stop: guard.stop });
    this._training.draw(state.training);
    this._gpu.draw(state.gpu);
    this._guard.draw(guard);
    const { forecast, limit } = host;
    const data = memoryData(
      { series: this._model.series, marks: state.marks, limit, forecast },
      (last, whole) =>
        trans.__(
          'Memory in use, last 5 minutes: %1 at the end',
          whole === null ? last : `${last} of ${whole}`
        )
    );
    if (data !== null) {
      this._chart.update(data);
    }
    this._updateNote();
  }

  dispose(): void {
    clearInterval(this._timer);
    this._endTheme();
    this._chart.dispose();
    this._root.remove();
  }

  /** The line at the bottom: why there are no updates. */
  private _updateNote(): void {
    const { isEnded, state } = this._model;
    const silent = this._model.silentSeconds(Date.now());
    const isSilent = state.busy && !isEnded && silent > SILENT_SECONDS;
    this._root.classList.toggle('jp-mod-stale', isSilent || isEnded);
    write(this._note, this._noteText(isSilent ? silent : null));
    this._note.hidden = this._note.textContent === '';
  }

  /** State of the guard and of the cell; without the cell after the last message. */
  private _guardText(): string {
    const { isEnded, state } = this._model;
    const { busy, guard } = state;
    if (isEnded) {
      return guard.text;
    }
    return busy ? trans.__('%1, running a cell', guard.text) : trans.__('%1, idle', guard.text);
  }

  private _noteText(silent: number | null): string {
    const { isEnded, state } = this._model;
    if (isEnded) {
      return trans.__('The guard was unloaded at %1.', clock(state.time));
    }
    if (silent === null) {
      return '';
    }
    const seconds = silent < 10 ? silent : silent - (silent % 5);
    return trans.__(
      'No message from the kernel for %1. Native code is blocking Python, or the kernel has ended.',
      humanSpan(seconds, trans)
    );
  }

  private readonly _root = element('div', 'jp-TfGuard-Panel jp-TfGuard-Widget');
  private readonly _title = element('span', 'jp-TfGuard-Widget-title');
  private readonly _sign = element('span', '');
  private readonly _stateText = element('span', 'jp-TfGuard-Widget-state');
  private readonly _state = element('span', 'jp-TfGuard-State', this._sign, ' ', this._stateText);
  private readonly _held = element('span', 'jp-TfGuard-big');
  private readonly _limit = element('span', 'jp-TfGuard-quiet jp-TfGuard-small');
  private readonly _shares = element('summary', 'jp-TfGuard-quiet jp-TfGuard-small');
  private readonly _details = element('div', 'jp-TfGuard-quiet jp-TfGuard-small');
  private readonly _near = element('div', 'jp-TfGuard-Notice jp-mod-warning');
  private readonly _note = element('div', 'jp-TfGuard-Widget-note');
  private readonly _stop = stopRow();
  private readonly _training = trainingSection();
  private readonly _gpu = gpuSection();
  private readonly _guard = guardSection();
  private readonly _chart: TimeChart;
  private readonly _endTheme: () => void;
  private readonly _timer: ReturnType<typeof setInterval>;
}
