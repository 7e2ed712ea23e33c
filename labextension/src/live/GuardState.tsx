import * as React from 'react';

import type { GuardModel } from '../model';
import type { CodeBlock } from '../parts/CodeBlock';
import { Drawn } from '../parts/Drawn';
import { CommandNotice, Notice } from '../parts/Notice';
import { humanSpan } from '../when';
import type { Growth, Guard, KernelState } from '../wire';
import type { Trans } from '../trans';

import { growthDrawing, problemsDrawing } from './guardDrawing';
import type { Mood } from './guardDrawing';

/** The age of old values is shown in steps of this size. */
const STALE_STEP_SECONDS = 5;

/** The state of the guard, and its words. */
export function stateOf(
  server: GuardModel['server'],
  kernel: KernelState | null,
  trans: Trans
): [Mood, string] {
  switch (server) {
    case 'connecting':
      return ['quiet', trans.__('connecting…')];
    case 'absent':
      return ['error', trans.__('not loaded')];
    case 'away':
      return ['error', trans.__('server not responding')];
    case 'locked':
    case 'refused':
      return ['error', trans.__('not working')];
    case 'ok':
      break;
  }
  if (kernel === null) {
    return ['quiet', trans.__('ready')];
  }
  if (!kernel.watched) {
    return ['quiet', trans.__('not tracked')];
  }
  const { loaded, problems, text } = kernel.guard;
  if (loaded === null) {
    return ['quiet', text];
  }
  return [
    loaded && problems.length === 0 ? 'good' : 'warning',
    loaded ? text : trans.__('server tracking only')
  ];
}

/** A problem with the server connection, and how to fix it. */
export function ServerNotice(props: ServerNotice.IProps): React.JSX.Element | null {
  const { server, staleSeconds, trouble, trans } = props;
  switch (server) {
    case 'absent':
      return (
        <Notice
          kind="error"
          text={trans.__('The TF Guard server extension is not loaded.')}
          fix={trans.__('Restart Jupyter, then reload this page.')}
        />
      );
    case 'away':
      return (
        <Notice
          kind="error"
          text={trans.__('The server is not responding.')}
          rest={
            staleSeconds === null || staleSeconds < STALE_STEP_SECONDS
              ? ''
              : trans.__(
                  'Values are %1 old.',
                  humanSpan(staleSeconds - (staleSeconds % STALE_STEP_SECONDS), trans)
                )
          }
          fix={trouble ?? trans.__('TF Guard will reconnect automatically.')}
        />
      );
    case 'locked':
      return (
        <Notice
          kind="error"
          text={trans.__('The server denied access to this page.')}
          fix={trans.__('Log in again, then reload this page.')}
        />
      );
    case 'refused':
      return <Notice kind="error" text={trans.__('The server returned an error.')} fix={trouble} />;
    case 'connecting':
    case 'ok':
      return trouble === null ? null : (
        <Notice kind="warning" text={trans.__('Could not read some data.')} fix={trouble} />
      );
  }
}

export namespace ServerNotice {
  export type IProps = Pick<GuardModel, 'server' | 'staleSeconds' | 'trouble'> & {
    readonly trans: Trans;
  };
}

/** Problems of the guard in the kernel, and memory growth unless a GPU section shows it. */
export function GuardNotices(props: GuardNotices.IProps): React.JSX.Element | null {
  const { guard, growth, copy, trans } = props;
  const { fix, loaded, problems, text } = guard;
  if (loaded !== false && problems.length === 0 && growth === null) {
    return null;
  }
  return (
    <section className="jp-TfGuard-Section jp-TfGuard-Guard" aria-label={trans.__('Guard')}>
      {loaded === false && fix !== null && <CommandNotice text={text} command={fix} copy={copy} />}
      {loaded === false && fix === null && <Notice kind="warning" text={text} />}
      <Drawn make={problemsDrawing} read={() => problems} />
      {growth !== null && <Drawn make={growthDrawing} read={() => growth} />}
    </section>
  );
}

export namespace GuardNotices {
  export interface IProps {
    readonly guard: Guard;
    readonly growth: Growth | null;
    readonly copy: CodeBlock.ICopy;
    readonly trans: Trans;
  }
}
