import * as React from 'react';

import { Section } from '../../parts/Section';
import { humanBytes } from '../../units';
import type { Trans } from '../../trans';

import type { ICard } from './cards';
import { sharesOf } from './holders';
import { eachText, modelOf, titleOf, usedText } from './texts';

const SHOWN_AT_FIRST = 8;

/** GPUs that this kernel does not use: one line each, which expands to all details. */
export function FoldedCards(props: FoldedCards.IProps): React.JSX.Element {
  const { cards, children, draw, title, trans } = props;
  const [isLong, setLong] = React.useState(false);
  const shown = isLong ? cards : cards.slice(0, SHOWN_AT_FIRST);
  const hidden = cards.length - shown.length;
  // Describe GPUs of one model once, so that the lines have room for the holder.
  const models = new Set(cards.map(({ device }) => modelOf(device)));
  const common = models.size === 1 ? cards[0]?.device : undefined;
  const kind = cards.length === 1 ? modelOf : eachText;
  return (
    <Section
      name="Gpu"
      title={title}
      aside={common === undefined ? undefined : kind(common, trans)}
      hint={common?.name}
    >
      {shown.map(card => (
        <details key={card.device.gpu_uuid} className="jp-TfGuard-Folded">
          <Line card={card} isShort={common !== undefined} trans={trans} />
          {common === undefined && (
            <div className="jp-TfGuard-quiet jp-TfGuard-small" title={card.device.name}>
              {modelOf(card.device)}
            </div>
          )}
          {draw(card)}
        </details>
      ))}
      {hidden > 0 && (
        <button type="button" className="jp-TfGuard-link" onClick={() => setLong(true)}>
          {trans.__('Show %1 more', hidden)}
        </button>
      )}
      {children}
    </Section>
  );
}

export namespace FoldedCards {
  export interface IProps {
    readonly cards: readonly ICard[];
    readonly title: string;
    /** Draws all details without the title. */
    readonly draw: (card: ICard) => React.JSX.Element;
    readonly children: React.ReactNode;
    readonly trans: Trans;
  }
}

/** `GPU 3 · train_b.ipynb    71.0 of 80.0 GiB`; the short form has no size, which is in the title. */
function Line(props: {
  readonly card: ICard;
  readonly isShort: boolean;
  readonly trans: Trans;
}): React.JSX.Element {
  const { card, isShort, trans } = props;
  const { device, instancesCount } = card;
  const used = isShort ? humanBytes(device.memory_used_bytes) : usedText(device, trans);
  const title = titleOf(device, trans);
  const who =
    instancesCount === null
      ? holderText(card, trans)
      : trans._n('%1 MIG instance', '%1 MIG instances', instancesCount);
  return (
    <summary className="jp-TfGuard-row jp-TfGuard-small">
      <span className="jp-TfGuard-name" title={who === '' ? title : `${title} · ${who}`}>
        {title}
        {who !== '' && <span className="jp-TfGuard-quiet"> · {who}</span>}
      </span>
      <span>{instancesCount === null ? used : ''}</span>
    </summary>
  );
}

/** This kernel if it holds memory, else the largest holder; and the number of other holders. */
function holderText({ device }: ICard, trans: Trans): string {
  const shares = sharesOf(device, trans).filter(share => share.kind !== 'rest');
  const [first] = shares;
  if (first === undefined) {
    return '';
  }
  const label =
    first.kind === 'this' ? trans.__('this kernel %1', humanBytes(first.bytes)) : first.short;
  return shares.length === 1 ? label : trans.__('%1 and %2 more', label, shares.length - 1);
}
