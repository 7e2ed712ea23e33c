/** The commands, for palette, menus and other extensions. */
import type { CommandRegistry } from '@lumino/commands';

import { shieldIcon } from './icons';
import type { Trans } from './words';

export const CommandIDs = {
  openPanel: 'tfguard:open-panel',
  showReport: 'tfguard:show-report',
  showLastReport: 'tfguard:show-last-report',
  showStacks: 'tfguard:show-stacks',
  showOptions: 'tfguard:show-options'
} as const;

/** What the commands do; they themselves only name it. */
export interface IActions {
  readonly openPanel: () => void;
  readonly showReport: (id: string) => void;
  readonly showLastReport: () => Promise<void>;
  readonly showStacks: () => Promise<void>;
  readonly showOptions: () => Promise<void>;
}

export function addCommands(commands: CommandRegistry, actions: IActions, trans: Trans): void {
  const add = (
    id: string,
    label: string,
    caption: string,
    execute: CommandRegistry.ICommandOptions['execute'],
    args: Record<string, { type: string; description: string }> = {}
  ): void => {
    const describedBy = { args: { type: 'object', properties: args, required: Object.keys(args) } };
    commands.addCommand(id, { label, caption, icon: shieldIcon, describedBy, execute });
  };
  add(
    CommandIDs.openPanel,
    trans.__('Show Kernel Memory and Past Deaths'),
    trans.__('Open the TF Guard panel'),
    actions.openPanel
  );
  add(
    CommandIDs.showReport,
    trans.__('Show Why a Kernel Died'),
    trans.__('Open the report of one death'),
    args => {
      if (typeof args.id !== 'string' || args.id === '') {
        throw new Error(`${CommandIDs.showReport} needs the id of a report.`);
      }
      actions.showReport(args.id);
    },
    { id: { type: 'string', description: trans.__('Id of the report') } }
  );
  add(
    CommandIDs.showLastReport,
    trans.__('Show Why the Last Kernel Died'),
    trans.__('Open the report of the last death'),
    actions.showLastReport
  );
  add(
    CommandIDs.showStacks,
    trans.__('Show What Every Thread of the Kernel Is Doing'),
    trans.__('Python stacks of all threads of the current kernel, which runs on'),
    actions.showStacks
  );
  add(
    CommandIDs.showOptions,
    trans.__('Show Options of the Guard'),
    trans.__('What the guard does in kernels and server, and how to change it'),
    actions.showOptions
  );
}
