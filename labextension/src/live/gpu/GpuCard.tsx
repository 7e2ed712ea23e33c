import * as React from 'react';

import type { TensorFlowMemory } from '../../wire';
import type { Trans } from '../../trans';

import { Alarms } from './Alarms';
import type { ICard } from './cards';
import { sharesOf } from './holders';
import { Bar, Shares } from './Shares';
import { factsOf, usedText } from './texts';

/** One GPU without its title: alarms, holders, utilization and temperature. */
export function GpuCard(props: GpuCard.IProps): React.JSX.Element {
  const { card, tensors, now, onOpenNotebook, trans } = props;
  const { device, instancesCount } = card;
  const facts = factsOf(device, trans);
  const shares = sharesOf(device, trans);
  return (
    <>
      <Alarms device={device} now={now} trans={trans} />
      {instancesCount === null ? (
        <>
          <Bar device={device} shares={shares} />
          <div className="jp-TfGuard-row jp-TfGuard-small">
            <span>{trans.__('in use')}</span>
            <span>{usedText(device, trans)}</span>
          </div>
          <Shares
            shares={shares}
            tensors={device.lost ? null : tensors}
            onOpenNotebook={onOpenNotebook}
            trans={trans}
          />
        </>
      ) : (
        <div className="jp-TfGuard-quiet jp-TfGuard-small">
          {trans._n('split into %1 MIG instance', 'split into %1 MIG instances', instancesCount)}
        </div>
      )}
      {device.note !== null && !device.lost && instancesCount === null && (
        <div className="jp-TfGuard-quiet jp-TfGuard-small">{device.note}</div>
      )}
      {facts !== '' && <div className="jp-TfGuard-quiet jp-TfGuard-small">{facts}</div>}
    </>
  );
}

export namespace GpuCard {
  export interface IProps {
    readonly card: ICard;
    /** Values of TensorFlow in this kernel for the GPU. */
    readonly tensors: TensorFlowMemory | null;
    /** Unix seconds. */
    readonly now: number;
    readonly onOpenNotebook: (path: string) => void;
    readonly trans: Trans;
  }
}
