import * as React from 'react';

import { Drawn } from '../../parts/Drawn';
import { Section } from '../../parts/Section';
import type { Series } from '../../series';
import type { GpuDevice, Gpus, Growth, TensorFlowMemory } from '../../wire';
import type { Trans } from '../../trans';

import { growthDrawing } from '../guardDrawing';

import { arrange, seenFrom } from './cards';
import type { ICard } from './cards';
import { FoldedCards } from './FoldedCards';
import { GpuCard } from './GpuCard';
import { GpuChart } from './GpuChart';
import { tensorsOn } from './holders';
import { modelOf, titleOf } from './texts';

/** A section for each GPU that this kernel uses, one line for each other GPU; a single line without GPUs. */
export function GpuSection(props: GpuSection.IProps): React.JSX.Element {
  const { gpus, growth, inside, kernelId, now, onOpenNotebook, series, trans } = props;
  if (gpus.devices.length === 0) {
    return (
      <Section name="Gpu" title={trans.__('GPU')}>
        <div className="jp-TfGuard-quiet">{emptyText(gpus, trans)}</div>
      </Section>
    );
  }
  const cards = arrange(seenFrom(kernelId, gpus.devices));
  const full = cards.filter(card => card.isFull);
  const folded = cards.filter(card => !card.isFull);
  const few = folded.length === 0 ? full.find(card => card.instancesCount === null) : undefined;
  const withGrowth = full.find(isOwn) ?? few;
  const only = onlyOwn(cards);
  const draw = (card: ICard): React.JSX.Element => (
    <GpuCard
      card={card}
      tensors={tensorsOn(card.device, inside, card.device === only)}
      now={now}
      onOpenNotebook={onOpenNotebook}
      trans={trans}
    />
  );
  const growthLine = <Drawn make={growthDrawing} read={() => growth} />;
  return (
    <>
      {full.map(card => (
        <Section
          key={card.device.gpu_uuid}
          name="Gpu"
          title={titleOf(card.device, trans)}
          aside={modelOf(card.device)}
          hint={card.device.name}
        >
          {draw(card)}
          {isOwn(card) && (
            <GpuChart
              device={card.device}
              series={series.get(card.device.gpu_uuid)}
              trans={trans}
            />
          )}
          {card === withGrowth && growthLine}
        </Section>
      ))}
      {folded.length > 0 && (
        <FoldedCards
          cards={folded}
          title={foldedTitle(full, folded, trans)}
          draw={draw}
          trans={trans}
        >
          {withGrowth === undefined && growthLine}
        </FoldedCards>
      )}
    </>
  );
}

export namespace GpuSection {
  export interface IProps {
    readonly gpus: Gpus;
    /** The current kernel. */
    readonly kernelId: string | null;
    /** Values of TensorFlow in this kernel for the GPUs. */
    readonly inside: readonly TensorFlowMemory[];
    readonly growth: Growth | null;
    /** Memory of the kernel on each GPU, by GPU UUID. */
    readonly series: ReadonlyMap<string, Series>;
    /** Unix seconds. */
    readonly now: number;
    readonly onOpenNotebook: (path: string) => void;
    readonly trans: Trans;
  }
}

function emptyText(gpus: Gpus, trans: Trans): string {
  switch (gpus.state) {
    case 'starting':
      return trans.__('Looking for GPUs…');
    case 'unavailable':
      return gpus.reason ?? trans.__('GPU values are not available');
    case 'none':
    case 'ok':
      return gpus.reason ?? trans.__('No NVIDIA GPU found');
  }
}

function foldedTitle(full: readonly ICard[], folded: readonly ICard[], trans: Trans): string {
  if (full.length === 0) {
    return trans.__('GPUs');
  }
  return folded.every(({ device }) => device.mig_index !== null)
    ? trans.__('Other MIG instances')
    : trans.__('Other GPUs');
}

function isOwn({ device }: ICard): boolean {
  return (device.holders ?? []).some(holder => holder.is_this);
}

/** The only GPU that this kernel uses, else the only GPU; null if there are several. */
function onlyOwn(cards: readonly ICard[]): GpuDevice | null {
  const pieces = cards.filter(card => card.instancesCount === null);
  const own = pieces.filter(isOwn);
  const candidates = own.length > 0 ? own : pieces;
  return candidates.length === 1 ? (candidates[0]?.device ?? null) : null;
}
