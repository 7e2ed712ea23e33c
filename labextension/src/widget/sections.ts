/** Sections in a cell's output, and the one that only the kernel has: memory of TensorFlow's allocators. */
import { element } from '../parts/dom';
import type { IDrawing } from '../parts/dom';
import { bytesOfLimit, humanBytes } from '../units';

import type { Allocator } from './model';
import { trans } from './english';

/** A section with a title. Its content is drawn in `body`. */
export function section(name: string, title: string): { node: HTMLElement; body: HTMLElement } {
  const body = element('div', '');
  const heading = element('div', 'jp-TfGuard-heading', title);
  const node = element('section', `jp-TfGuard-Section jp-TfGuard-${name}`, heading, body);
  node.setAttribute('aria-label', title);
  return { node, body };
}

/** Memory of TensorFlow tensors on each GPU, and the limit of the allocator. */
export function allocatorsDrawing(root: HTMLElement): IDrawing<readonly Allocator[]> {
  return { draw: allocators => root.replaceChildren(...allocators.flatMap(allocatorRows)) };
}

function allocatorRows(allocator: Allocator): HTMLElement[] {
  const { device, in_use_bytes: used, limit_bytes: limit, peak_bytes: peak } = allocator;
  const held =
    limit === null ? humanBytes(used) : trans.__('%1 of %2', ...bytesOfLimit(used, limit));
  const names = [element('span', '', device), element('span', '', held)];
  return [
    element('div', 'jp-TfGuard-row jp-mod-wrap', ...names),
    ...(used === null || limit === null || limit <= 0 ? [] : [bar(used / limit)]),
    ...(peak === null
      ? []
      : [
          element('div', 'jp-TfGuard-quiet jp-TfGuard-small', trans.__('peak %1', humanBytes(peak)))
        ])
  ];
}

/** The text above it has the same content. */
function bar(fraction: number): HTMLElement {
  const filled = element('i', '');
  filled.style.width = `${Math.min(1, Math.max(0, fraction)) * 100}%`;
  return element('div', 'jp-TfGuard-bar', filled);
}
