/** The sections of the panel below the chart. Sections without content are hidden. */
import { bytesOfLimit, humanBytes, humanCount } from '../units';
import { GROWTH_SIGNS } from '../live/gpu/growthSigns';
import { stopSign, stopText } from '../live/stopText';
import { detailsText, doneFraction, nameText, paceText, positionText } from '../live/trainingText';
import type { Guard, Stop, Training } from '../wire';

import { element, write } from '../parts/dom';
import type { Allocator } from './model';
import { trans } from './words';

/** A section that redraws into the same elements. */
export interface ISection<T> {
  readonly node: HTMLElement;
  draw(value: T): void;
}

function section(name: string, title: string): HTMLElement {
  const made = element(
    'section',
    `jp-TfGuard-Section jp-TfGuard-${name}`,
    element('div', 'jp-TfGuard-heading', title)
  );
  made.setAttribute('aria-label', title);
  return made;
}

function row(...cells: readonly HTMLElement[]): HTMLElement {
  return element('div', 'jp-TfGuard-row jp-mod-wrap', ...cells);
}

/** A bar that is filled from the left; the text next to it has the same content. */
class Bar {
  readonly node = element('div', 'jp-TfGuard-bar', this._fill());

  draw(fraction: number | null): void {
    this.node.hidden = fraction === null;
    this._filled.style.width = `${Math.min(1, Math.max(0, fraction ?? 0)) * 100}%`;
  }

  private _fill(): HTMLElement {
    return (this._filled = element('i', ''));
  }

  private _filled!: HTMLElement;
}

/** A `fit`, `evaluate`, `predict` or training loop: progress, speed and time left. */
export function trainingSection(): ISection<Training | null> {
  const node = section('Training', trans.__('Training'));
  const name = element('b', '');
  const size = element('span', 'jp-TfGuard-quiet jp-TfGuard-small');
  const bar = new Bar();
  const position = element('span', '');
  const pace = element('span', '');
  const details = element('div', 'jp-TfGuard-quiet jp-TfGuard-small');
  const counts = row(position, pace);
  counts.classList.add('jp-TfGuard-small');
  node.append(row(name, size), bar.node, counts, details);
  return {
    node,
    draw: training => {
      node.hidden = training === null;
      if (training === null) {
        return;
      }
      const { parameter_count } = training;
      write(name, nameText(training, trans));
      write(
        size,
        parameter_count === null ? '' : trans.__('%1 parameters', humanCount(parameter_count))
      );
      bar.draw(doneFraction(training));
      bar.node.classList.toggle('jp-mod-ended', !training.active);
      write(position, positionText(training, trans));
      write(pace, paceText(training, trans));
      write(details, detailsText(training, trans));
    }
  };
}

/** Memory of TensorFlow tensors on each GPU, and the limit of the allocator. */
export function gpuSection(): ISection<readonly Allocator[]> {
  const node = section('Gpu', trans.__('GPU memory in TensorFlow tensors'));
  const rows = element('div', '');
  node.append(rows);
  return {
    node,
    draw: allocators => {
      node.hidden = allocators.length === 0;
      rows.replaceChildren(...allocators.flatMap(allocatorRows));
    }
  };
}

function allocatorRows(allocator: Allocator): HTMLElement[] {
  const { device, in_use_bytes: used, limit_bytes: limit, peak_bytes: peak } = allocator;
  const bar = new Bar();
  bar.draw(used === null || limit === null || limit <= 0 ? null : used / limit);
  const held =
    limit === null ? humanBytes(used) : trans.__('%1 of %2', ...bytesOfLimit(used, limit));
  return [
    row(element('span', '', device), element('span', '', held)),
    bar.node,
    ...(peak === null
      ? []
      : [
          element('div', 'jp-TfGuard-quiet jp-TfGuard-small', trans.__('peak %1', humanBytes(peak)))
        ])
  ];
}

/** Memory growth and problems of the guard. */
export function guardSection(): ISection<Guard> {
  const node = element('section', 'jp-TfGuard-Section jp-TfGuard-Guard');
  node.setAttribute('aria-label', trans.__('Guard'));
  return {
    node,
    draw: ({ growth, problems }) => {
      node.hidden = growth === null && problems.length === 0;
      node.replaceChildren(
        ...problems.map(problem => line('▲', problem, true)),
        ...(growth === null
          ? []
          : [line(GROWTH_SIGNS[growth.state], growth.text, GROWTH_SIGNS[growth.state] === '▲')])
      );
    }
  };
}

/** Whether the guard stops cells that fill the memory, at what threshold, and what does not work here. */
export function stopRow(): ISection<{ isNear: boolean; stop: Stop | null | undefined }> {
  const node = element('div', 'jp-TfGuard-Stop');
  return {
    node,
    draw: ({ isNear, stop }) =>
      node.replaceChildren(
        ...(stop
          ? [
              element(
                'div',
                isNear ? 'jp-TfGuard-Notice jp-mod-warning' : 'jp-TfGuard-quiet jp-TfGuard-small',
                `${stopSign(stop, isNear)} ${stopText(stop, isNear, trans)}`
              ),
              ...stop.notes.map(note => line('', note, false))
            ]
          : [])
      )
  };
}

function line(sign: string, text: string, isWarning: boolean): HTMLElement {
  const drawn = element('span', '', sign);
  drawn.setAttribute('aria-hidden', 'true');
  const mood = isWarning ? 'jp-mod-warning' : 'jp-TfGuard-quiet';
  return element('div', `jp-TfGuard-Growth jp-TfGuard-small ${mood}`, drawn, ` ${text}`);
}
