/** One panel in a cell's output: the drawings of the panel in JupyterLab, without JupyterLab. */
import { onThemeChange } from '../chart/theme';
import { growthDrawing, headerDrawing, problemsDrawing } from '../live/guardDrawing';
import { memoryDrawing } from '../live/memoryDrawing';
import { trainingDrawing } from '../live/trainingDrawing';
import { element, write } from '../parts/dom';
import { clock, humanSpan } from '../when';

import type { PanelModel } from './model';
import { allocatorsDrawing, section } from './sections';
import { followHost } from './theme';
import { trans } from './english';

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
    this._guard.setAttribute('aria-label', trans.__('Guard'));
    root.append(
      this._head,
      this._memory.node,
      this._training.node,
      this._gpu.node,
      this._guard,
      this._note
    );
    followHost(root);
    host.append(root);
    this._endTheme = onThemeChange(() => followHost(root));
    this._timer = setInterval(() => this._updateNote(), 1000);
    this.draw();
  }

  /** Show the model as it is now. */
  draw(): void {
    const { isNearStop, series, state } = this._model;
    const { gpu, guard, host, marks, notebook, training } = state;
    const { growth, problems } = guard;
    this._drawHeader.draw({
      name: notebook,
      hint: notebook ?? '',
      mood: problems.length === 0 ? 'good' : 'warning',
      text: this._guardText()
    });
    // A saved notebook may have a state of an older version.
    const stop = guard.stop ?? null;
    this._drawMemory.draw({ host, others: [], isNearStop, marks, series, stop });
    this._training.node.hidden = training === null;
    this._drawTraining.draw(training);
    this._gpu.node.hidden = gpu.length === 0;
    this._drawGpu.draw(gpu);
    this._guard.hidden = growth === null && problems.length === 0;
    this._drawProblems.draw(problems);
    this._growth.hidden = growth === null;
    this._drawGrowth.draw(growth);
    this._updateNote();
  }

  dispose(): void {
    clearInterval(this._timer);
    this._endTheme();
    this._drawMemory.dispose?.();
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
  private readonly _head = element('div', '');
  private readonly _memory = section('HostMemory', trans.__('Host memory'));
  private readonly _training = section('Training', trans.__('Training'));
  private readonly _gpu = section('Gpu', trans.__('GPU memory in TensorFlow tensors'));
  private readonly _problems = element('div', '');
  private readonly _growth = element('div', '');
  private readonly _guard = element(
    'section',
    'jp-TfGuard-Section jp-TfGuard-Guard',
    this._problems,
    this._growth
  );
  private readonly _note = element('div', 'jp-TfGuard-Widget-note');
  private readonly _drawHeader = headerDrawing(this._head, trans);
  // The axis has times of day, because a widget stays visible after its last update.
  private readonly _drawMemory = memoryDrawing(this._memory.body, null, trans);
  private readonly _drawTraining = trainingDrawing(this._training.body, trans);
  private readonly _drawGpu = allocatorsDrawing(this._gpu.body);
  private readonly _drawProblems = problemsDrawing(this._problems);
  private readonly _drawGrowth = growthDrawing(this._growth);
  private readonly _endTheme: () => void;
  private readonly _timer: ReturnType<typeof setInterval>;
}
