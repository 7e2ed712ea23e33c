import * as React from 'react';

import type { ShownOutOfMemory } from '../currentKernel';
import type { GuardModel } from '../model';
import { Boundary } from '../parts/Boundary';
import type { CodeBlock } from '../parts/CodeBlock';
import { Drawn } from '../parts/Drawn';
import { Section } from '../parts/Section';
import { hasServerPart } from '../serverLink';
import { shortFileName } from '../units';
import type { Gpus, Growth } from '../wire';
import type { Trans } from '../trans';

import { CellsByMemory } from './CellsByMemory';
import { GpuSection } from './gpu/GpuSection';
import { headerDrawing } from './guardDrawing';
import { GuardNotices, ServerNotice, stateOf } from './GuardState';
import { HangNotice } from './HangNotice';
import { HostMemory } from './HostMemory';
import { OtherKernels } from './OtherKernels';
import { OutOfMemoryNotice } from './OutOfMemoryNotice';
import { PastCrashes } from './PastCrashes';
import { ProblemNotices } from './ProblemNotices';
import { trainingDrawing } from './trainingDrawing';

/** The panel. Sections without content are left out. */
export function Panel(props: Panel.IProps): React.JSX.Element {
  const { model, now, onOpenNotebook, onOpenReport, onShowOptions, trans } = props;
  const { crashes, gpus, kernel, others, problems, server, staleSeconds, target, trouble } = model;
  const shown = kernel?.watched ? kernel : null;
  const hasServer = hasServerPart(server);
  const name = target && shortFileName(target.path);
  const [mood, text] = stateOf(server, kernel, trans);
  const header = { name, hint: target?.path ?? '', mood, text };
  return (
    <div className={`jp-TfGuard-body${server === 'away' ? ' jp-mod-stale' : ''}`}>
      <Drawn make={host => headerDrawing(host, trans)} read={() => header} />
      <Boundary>
        <ServerNotice server={server} staleSeconds={staleSeconds} trouble={trouble} trans={trans} />
      </Boundary>
      <Boundary>
        <ProblemNotices problems={problems} now={now} trans={trans} />
      </Boundary>
      {hasServer && (
        <>
          <Kernel {...props} />
          <Boundary>
            {gpus !== null && (
              <GpuSection
                gpus={gpus}
                kernelId={target?.kernelId ?? null}
                series={model.gpuSeries}
                inside={shown?.gpu?.tensorflow ?? []}
                growth={shown?.guard.growth ?? null}
                now={now}
                onOpenNotebook={onOpenNotebook}
                trans={trans}
              />
            )}
          </Boundary>
          <Boundary>
            {shown !== null && <CellsByMemory cells={shown.cells} trans={trans} />}
          </Boundary>
          <Boundary>
            <OtherKernels others={others} trans={trans} />
          </Boundary>
        </>
      )}
      <Boundary>
        {crashes !== null && (
          <PastCrashes crashes={crashes} now={now} onOpen={onOpenReport} trans={trans} />
        )}
      </Boundary>
      {hasServer && (
        <button type="button" className="jp-TfGuard-link jp-TfGuard-last" onClick={onShowOptions}>
          {trans.__('Guard options')}
        </button>
      )}
    </div>
  );
}

export namespace Panel {
  /** The part of the model that the panel reads. */
  export type IState = Pick<
    GuardModel,
    | 'crashes'
    | 'gpuSeries'
    | 'gpus'
    | 'hasAnswer'
    | 'isNearStop'
    | 'kernel'
    | 'marks'
    | 'others'
    | 'outOfMemory'
    | 'problems'
    | 'series'
    | 'server'
    | 'staleSeconds'
    | 'target'
    | 'trouble'
  > &
    Partial<Pick<GuardModel, 'moved'>>;

  export interface IProps {
    readonly model: IState;
    readonly copy: CodeBlock.ICopy;
    /** Unix seconds. */
    readonly now: number;
    readonly onDismiss: (event: ShownOutOfMemory) => void;
    readonly onOpenNotebook: (path: string) => void;
    readonly onOpenReport: (id: string) => void;
    readonly onShowOptions: () => void;
    readonly onShowStacks: (kernelId: string) => void;
    readonly trans: Trans;
  }
}

/** The sections of the current kernel, or one line that says why there are none. */
function Kernel(props: Panel.IProps): React.JSX.Element {
  const { copy, model, now, onDismiss, onShowStacks, trans } = props;
  const { gpus, kernel, outOfMemory, target } = model;
  if (target === null) {
    return (
      <Hint text={trans.__('Open a notebook or a console to see the memory of its kernel.')} />
    );
  }
  if (target.kernelId === null) {
    return <Hint text={trans.__('No kernel is running.')} />;
  }
  if (kernel === null) {
    return (
      <Hint
        text={
          model.hasAnswer
            ? trans.__('This server does not manage the kernel, so TF Guard cannot track it.')
            : trans.__('Waiting for the first values…')
        }
      />
    );
  }
  if (!kernel.watched) {
    return (
      <Hint text={kernel.unwatched_reason ?? trans.__('TF Guard does not track this kernel.')} />
    );
  }
  return (
    <>
      <Boundary>
        {kernel.hang !== null && (
          <HangNotice
            hang={kernel.hang}
            now={kernel.host.time ?? now}
            onShowStacks={() => onShowStacks(kernel.kernel_id)}
            trans={trans}
          />
        )}
      </Boundary>
      <Boundary>
        {outOfMemory.map(event => (
          <OutOfMemoryNotice
            key={`${event.kind} ${event.time}`}
            copy={copy}
            event={event}
            now={now}
            onDismiss={() => onDismiss(event)}
            trans={trans}
          />
        ))}
      </Boundary>
      <Boundary>
        <HostMemory model={model} trans={trans} />
      </Boundary>
      <Boundary>
        <GuardNotices
          guard={kernel.guard}
          growth={growthWithoutCard(gpus, kernel.guard.growth)}
          copy={copy}
          trans={trans}
        />
      </Boundary>
      <Boundary>
        {(kernel.training !== null || kernel.guard.growth !== null) && (
          <Section name="Training" title={trans.__('Training')}>
            <Drawn make={host => trainingDrawing(host, trans)} read={() => kernel.training} />
          </Section>
        )}
      </Boundary>
    </>
  );
}

/** Memory growth, unless a GPU section shows it or there is no GPU. */
function growthWithoutCard(gpus: Gpus | null, growth: Growth | null): Growth | null {
  const isShownElsewhere =
    gpus !== null &&
    (gpus.devices.length > 0 || (gpus.state === 'none' && growth?.state === 'no_gpu'));
  return isShownElsewhere ? null : growth;
}

function Hint({ text }: { text: string }): React.JSX.Element {
  return (
    <section className="jp-TfGuard-Section jp-TfGuard-Hint">
      <div className="jp-TfGuard-quiet">{text}</div>
    </section>
  );
}
