import * as React from 'react';

import { Section } from '../parts/Section';
import { humanCount } from '../units';
import type { Training } from '../wire';
import type { Trans } from '../words';

import { detailsText, doneFraction, paceText, positionText } from './trainingText';

/** A `fit`, `evaluate` or `predict`: how far it is, how fast, how long yet. The bar is the whole of it. */
export function TrainingCard(props: TrainingCard.IProps): React.JSX.Element {
  const { training, trans } = props;
  const name = training.model_name;
  const done = doneFraction(training);
  return (
    <Section name="Training" title={trans.__('Training')}>
      <div className="jp-TfGuard-row jp-mod-wrap">
        <b>{name === null ? training.kind : `${training.kind} · ${name}`}</b>
        {training.parameter_count !== null && (
          <span className="jp-TfGuard-quiet jp-TfGuard-small">
            {trans.__('%1 parameters', humanCount(training.parameter_count))}
          </span>
        )}
      </div>
      {done !== null && (
        <div
          className={`jp-TfGuard-bar${training.active ? '' : ' jp-mod-ended'}`}
          role="progressbar"
          aria-label={trans.__('Training progress')}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(done * 100)}
        >
          <i style={{ width: `${done * 100}%` }} />
        </div>
      )}
      <div className="jp-TfGuard-row jp-mod-wrap jp-TfGuard-small">
        <span>{positionText(training, trans)}</span>
        <span>{paceText(training, trans)}</span>
      </div>
      <div className="jp-TfGuard-quiet jp-TfGuard-small">{detailsText(training, trans)}</div>
    </Section>
  );
}

export namespace TrainingCard {
  export interface IProps {
    readonly training: Training;
    readonly trans: Trans;
  }
}
