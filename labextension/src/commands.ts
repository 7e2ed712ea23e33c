/** Registers the commands for the palette, menus and other extensions. */
import type { CommandRegistry } from '@lumino/commands';

import { shieldIcon } from './icons';
import type { Trans } from './trans';

export const CommandIDs = {
  openPanel: 'tfguard:open-panel',
  showReport: 'tfguard:show-report',
  showLastReport: 'tfguard:show-last-report',
  showStacks: 'tfguard:show-stacks',
  showOptions: 'tfguard:show-options'
} as const;

/** Implementations of the commands. */
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
    trans.__('Show Kernel Memory and Past Crashes'),
    trans.__('Open the TF Guard panel'),
    actions.openPanel
  );
  add(
    CommandIDs.showReport,
    trans.__('Show Why a Kernel Died'),
    trans.__('Open a crash report'),
    args => {
      if (typeof args.id !== 'string' || args.id === '') {
        throw new Error(`${CommandIDs.showReport} needs the ID of a report.`);
      }
      actions.showReport(args.id);
    },
    { id: { type: 'string', description: trans.__('ID of the report') } }
  );
  add(
    CommandIDs.showLastReport,
    trans.__('Show Why the Last Kernel Died'),
    trans.__('Open the report of the last crash'),
    actions.showLastReport
  );
  add(
    CommandIDs.showStacks,
    trans.__('Show Kernel Stack Traces'),
    trans.__(
      'Show the Python stack of every thread of the current kernel. The kernel keeps running.'
    ),
    actions.showStacks
  );
  add(
    CommandIDs.showOptions,
    trans.__('Show Guard Options'),
    trans.__('Show the options for kernels and the server, and how to change them'),
    actions.showOptions
  );
}
