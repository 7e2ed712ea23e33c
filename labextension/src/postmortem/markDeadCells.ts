import type { ILabShell, JupyterFrontEnd } from '@jupyterlab/application';
import type { IStateDB } from '@jupyterlab/statedb';

import type { GuardModel } from '../model';
import type { Trans } from '../words';

import { CellMarker } from './CellMarker';
import { DeadCells } from './deadCells';
import type { IDismissedStore } from './deadCells';

const STATE_ID = 'jupyter-tfguard:dismissed-marks';

/** From now on, mark the cells in which kernels died; returns the switch for it. */
export function markDeadCells(options: {
  readonly labShell: ILabShell | null;
  readonly model: Pick<GuardModel, 'crashesRead'>;
  readonly openReport: (id: string) => void;
  readonly shell: JupyterFrontEnd.IShell;
  readonly state: IStateDB | null;
  readonly trans: Trans;
}): DeadCells {
  const { labShell, model, shell, state } = options;
  const deadCells = new DeadCells(dismissedIn(state));
  const marker = new CellMarker({ ...options, deadCells });
  model.crashesRead.connect((_, crashes) => deadCells.setCrashes(crashes), marker);
  shell.currentChanged?.connect(marker.update, marker);
  labShell?.layoutModified.connect(marker.update, marker);
  void deadCells.start();
  return deadCells;
}

/** JupyterLab's state of this workspace; without one, marks that were taken away return with the page. */
function dismissedIn(state: IStateDB | null): IDismissedStore {
  return {
    load: async () => {
      const kept = await state?.fetch(STATE_ID);
      return Array.isArray(kept) ? kept.filter(id => typeof id === 'string') : [];
    },
    save: async ids => {
      await state?.save(STATE_ID, [...ids]);
    }
  };
}
