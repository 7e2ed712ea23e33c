import * as React from 'react';

import { Section } from '../parts/Section';
import { humanCount } from '../units';
import type { Training } from '../wire';
import type { Trans } from '../words';

import { detailsText, doneFraction, nameText, paceText, positionText } from './trainingText';

/** Keeps the height of a line without text. */
const BLANK = '\u00a0';

/**
 * A `fit`, `evaluate`, `predict` or training loop: progress, speed and time left. Its height is constant, also before
 * the first run and where the end is not known, so that the sections below do not move.
 */
export function TrainingCard(props: TrainingCard.IProps): React.JSX.Element {
  const { training, trans } = props;
  const done = training && doneFraction(training);
  const position = training === null ? '' : positionText(training, trans);
  const pace = training === null ? '' : paceText(training, trans);
  const details = training === null ? '' : detailsText(training, trans);
  return (
    <Section name="Training" title={trans.__('Training')}>
      {training === null ? (
        <div className="jp-TfGuard-quiet">{trans.__('No training yet.')}</div>
      ) : (
        <div className="jp-TfGuard-row">
          <b className="jp-TfGuard-name" title={training.model_name ?? ''}>
            {nameText(training, trans)}
          </b>
          {training.parameter_count !== null && (
            <span className="jp-TfGuard-quiet jp-TfGuard-small">
              {trans.__('%1 parameters', humanCount(training.parameter_count))}
            </span>
          )}
        </div>
      )}
      {done !== null && (
        <div
          className={`jp-TfGuard-bar${training?.active ? '' : ' jp-mod-ended'}`}
          role="progressbar"
          aria-label={trans.__('Training progress')}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(done * 100)}
        >
          <i style={{ width: `${done * 100}%` }} />
        </div>
      )}
      <div className="jp-TfGuard-small jp-TfGuard-name">{position === '' ? BLANK : position}</div>
      <div className="jp-TfGuard-small jp-TfGuard-name">{pace === '' ? BLANK : pace}</div>
      <div className="jp-TfGuard-quiet jp-TfGuard-small jp-TfGuard-twoLines" title={details}>
        {details}
      </div>
      {done === null && <div className="jp-TfGuard-bar jp-mod-unknown" />}
    </Section>
  );
}

export namespace TrainingCard {
  export interface IProps {
    /** Null before the first one. */
    readonly training: Training | null;
    readonly trans: Trans;
  }
}
