import * as React from 'react';

import type { GuardModel } from '../model';
import { Drawn } from '../parts/Drawn';
import { Section } from '../parts/Section';
import type { Trans } from '../trans';

import { memoryDrawing } from './memoryDrawing';
import type { IMemory } from './memoryDrawing';

/** Memory in use against the limit of the current kernel, and who holds it. */
export function HostMemory({ model, trans }: HostMemory.IProps): React.JSX.Element | null {
  const ends = [trans.__('−5 min'), trans.__('now')] as const;
  const read = (): IMemory | undefined => {
    const { isNearStop, kernel, marks, others, series } = model;
    const shown = kernel && { host: kernel.host, stop: kernel.guard.stop };
    return shown ? { ...shown, isNearStop, marks, others, series } : undefined;
  };
  return model.kernel === null ? null : (
    <Section name="HostMemory" title={trans.__('Host memory')}>
      <Drawn make={host => memoryDrawing(host, ends, trans)} moved={model.moved} read={read} />
    </Section>
  );
}

export namespace HostMemory {
  export interface IProps {
    readonly model: Pick<GuardModel, 'isNearStop' | 'kernel' | 'marks' | 'others' | 'series'> &
      Partial<Pick<GuardModel, 'moved'>>;
    readonly trans: Trans;
  }
}
