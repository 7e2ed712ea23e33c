/** Texts about the stop of cells that fill the memory, shared by the panel and the widget. */
import { humanBytes } from '../units';
import type { Stop } from '../wire';
import type { Trans } from '../words';

/** The state of the stop and its threshold. */
export function stopText({ state, stop_bytes }: Stop, isNear: boolean, trans: Trans): string {
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
export function stopSign({ state }: Stop, isNear: boolean): '✓' | '○' | '▲' {
  return isNear ? '▲' : state === 'on' ? '✓' : '○';
}
