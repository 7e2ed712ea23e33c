/** The stop of cells that fill the memory: its state, its threshold, and what does not work here. */
import { element, sign, write } from '../parts/dom';
import type { IDrawing } from '../parts/dom';
import { humanBytes } from '../units';
import type { Stop } from '../wire';
import type { Trans } from '../trans';

export interface IStop {
  /** Null or missing: the kernel has none, or its guard is older. */
  readonly stop: Stop | null | undefined;
  /** Whether memory is near the threshold. */
  readonly isNear: boolean;
}

export function stopDrawing(root: HTMLElement, trans: Trans): IDrawing<IStop> {
  const mark = sign();
  const state = element('span', '');
  const line = element('div', '', mark, ' ', state);
  const notes = element('div', '');
  state.setAttribute('role', 'status');
  root.className = 'jp-TfGuard-Stop jp-TfGuard-small';
  root.append(line, notes);
  return {
    draw: ({ isNear, stop }) => {
      root.hidden = !stop;
      if (stop) {
        line.className = isNear ? 'jp-TfGuard-Notice jp-mod-warning' : 'jp-TfGuard-quiet';
        write(mark, signOf(stop, isNear));
        write(state, textOf(stop, isNear, trans));
        notes.replaceChildren(
          ...stop.notes.map(note => element('div', 'jp-TfGuard-quiet jp-TfGuard-under', note))
        );
      }
    }
  };
}

function textOf({ state, stop_bytes }: Stop, isNear: boolean, trans: Trans): string {
  switch (state) {
    case 'on': {
      const left = humanBytes(stop_bytes);
      return isNear
        ? trans.__('Memory is nearly full. tfguard stops the cell when less than %1 is left.', left)
        : trans.__('Stops a cell when less than %1 is left', left);
    }
    case 'paused':
      return trans.__('Stop paused (%tfguard resume)');
    case 'off':
      return trans.__('Stop off');
    case 'unavailable':
      return trans.__('Stop not available on this system');
  }
}

/** ✓ cells are stopped; ○ they are not; ▲ the running cell may be stopped soon. */
function signOf({ state }: Stop, isNear: boolean): '✓' | '○' | '▲' {
  return isNear ? '▲' : state === 'on' ? '✓' : '○';
}
