import { LabIcon } from '@jupyterlab/ui-components';

import shieldText from '../style/icons/shield.svg';

/** The guard's mark: a shield around a line that rises. */
export const shieldIcon = new LabIcon({ name: 'jupyter-tfguard:shield', svgstr: shieldText });
