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
  commands.addCommand(CommandIDs.openPanel, {
    label: trans.__('Show Kernel Memory and Past Deaths'),
    caption: trans.__('Open the TF Guard panel'),
    icon: shieldIcon,
    describedBy: { args: { type: 'object', properties: {} } },
    execute: () => actions.openPanel()
  });
  commands.addCommand(CommandIDs.showReport, {
    label: trans.__('Show Why a Kernel Died'),
    caption: trans.__('Open the report of one death'),
    icon: shieldIcon,
    describedBy: {
      args: {
        type: 'object',
        properties: {
          id: { type: 'string', description: trans.__('Id of the report') }
        },
        required: ['id']
      }
    },
    execute: args => {
      if (typeof args.id !== 'string' || args.id === '') {
        throw new Error(`${CommandIDs.showReport} needs the id of a report.`);
      }
      actions.showReport(args.id);
    }
  });
  commands.addCommand(CommandIDs.showLastReport, {
    label: trans.__('Show Why the Last Kernel Died'),
    caption: trans.__('Open the report of the last death'),
    icon: shieldIcon,
    describedBy: { args: { type: 'object', properties: {} } },
    execute: () => actions.showLastReport()
  });
  commands.addCommand(CommandIDs.showStacks, {
    label: trans.__('Show What Every Thread of the Kernel Is Doing'),
    caption: trans.__('Python stacks of all threads of the current kernel, which runs on'),
    icon: shieldIcon,
    describedBy: { args: { type: 'object', properties: {} } },
    execute: () => actions.showStacks()
  });
  commands.addCommand(CommandIDs.showOptions, {
    label: trans.__('Show Options of the Guard'),
    caption: trans.__('What the guard does in kernels and server, and how to change it'),
    icon: shieldIcon,
    describedBy: { args: { type: 'object', properties: {} } },
    execute: () => actions.showOptions()
  });
}
