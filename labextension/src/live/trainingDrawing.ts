/**
 * A `fit`, `evaluate`, `predict` or training loop: progress, speed and time left. Its height is constant, also before
 * the first run and where the end is not known, so that what is below does not move.
 */
import { element, write } from '../parts/dom';
import type { IDrawing } from '../parts/dom';
import { humanCount } from '../units';
import type { Training } from '../wire';
import type { Trans } from '../trans';

import { detailsText, doneFraction, nameText, paceText, positionText } from './trainingText';

/** Keeps the height of a line without text. */
const BLANK = '\u00a0';

/** Null before the first one. */
export function trainingDrawing(root: HTMLElement, trans: Trans): IDrawing<Training | null> {
  const none = element('div', 'jp-TfGuard-quiet', trans.__('No training yet.'));
  const name = element('b', 'jp-TfGuard-name');
  const size = element('span', 'jp-TfGuard-quiet jp-TfGuard-small');
  const head = element('div', 'jp-TfGuard-row', name, size);
  const filled = element('i', '');
  const bar = element('div', 'jp-TfGuard-bar', filled);
  bar.setAttribute('role', 'progressbar');
  bar.setAttribute('aria-label', trans.__('Training progress'));
  bar.setAttribute('aria-valuemin', '0');
  bar.setAttribute('aria-valuemax', '100');
  const position = element('div', 'jp-TfGuard-small jp-TfGuard-name');
  const pace = element('div', 'jp-TfGuard-small jp-TfGuard-name');
  const details = element('div', 'jp-TfGuard-quiet jp-TfGuard-small jp-TfGuard-twoLines');
  const space = element('div', 'jp-TfGuard-bar jp-mod-unknown');
  const lines = [position, pace, details];
  let last: readonly HTMLElement[] = [];
  return {
    draw: training => {
      const done = training && doneFraction(training);
      const first = training === null ? none : head;
      const parts = done === null ? [first, ...lines, space] : [first, bar, ...lines];
      if (parts[0] !== last[0] || parts[1] !== last[1]) {
        root.replaceChildren(...parts);
        last = parts;
      }
      if (training !== null) {
        const { active, model_name, parameter_count } = training;
        name.title = model_name ?? '';
        write(name, nameText(training, trans));
        write(
          size,
          parameter_count === null ? '' : trans.__('%1 parameters', humanCount(parameter_count))
        );
        bar.classList.toggle('jp-mod-ended', !active);
      }
      if (done !== null) {
        bar.setAttribute('aria-valuenow', String(Math.round(done * 100)));
        filled.style.width = `${done * 100}%`;
      }
      const texts = training
        ? [positionText(training, trans), paceText(training, trans), detailsText(training, trans)]
        : [];
      lines.forEach((line, index) => write(line, texts[index] ? texts[index] : BLANK));
      details.title = texts[2] ?? '';
    }
  };
}
