import * as React from 'react';

import { Section } from '../parts/Section';
import { humanCount, humanMetric, humanRate } from '../units';
import { clock, humanSpan } from '../when';
import type { Training } from '../wire';
import type { Trans } from '../words';

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
        <span>{position(training, trans)}</span>
        <span>{pace(training, trans)}</span>
      </div>
      <div className="jp-TfGuard-quiet jp-TfGuard-small">{details(training, trans)}</div>
    </Section>
  );
}

export namespace TrainingCard {
  export interface IProps {
    readonly training: Training;
    readonly trans: Trans;
  }
}

/** Part of the whole run that is done, or null where its length is not known. */
export function doneFraction(training: Training): number | null {
  const { epoch, epochs, step, steps, active, ended } = training;
  if (!active && ended !== null && epochs !== null && epoch !== null && epoch >= epochs) {
    return 1;
  }
  const inEpoch = step !== null && steps !== null && steps > 0 ? (step - 1) / steps : null;
  if (epochs === null || epochs <= 0) {
    return inEpoch === null ? null : clamp(inEpoch);
  }
  return epoch === null ? null : clamp((epoch - 1 + (inEpoch ?? 0)) / epochs);
}

function clamp(fraction: number): number {
  return Math.min(1, Math.max(0, fraction));
}

function position({ epoch, epochs, step, steps }: Training, trans: Trans): string {
  const parts: string[] = [];
  if (epoch !== null) {
    parts.push(
      epochs === null ? trans.__('epoch %1', epoch) : trans.__('epoch %1 of %2', epoch, epochs)
    );
  }
  if (step !== null) {
    parts.push(steps === null ? trans.__('step %1', step) : trans.__('step %1 of %2', step, steps));
  }
  return parts.join(' · ');
}

function pace(training: Training, trans: Trans): string {
  if (!training.active) {
    return training.ended === null ? '' : trans.__('ended %1', clock(training.ended, true));
  }
  const parts: string[] = [];
  if (training.steps_per_second !== null) {
    parts.push(trans.__('%1 steps/s', humanRate(training.steps_per_second)));
  }
  if (training.seconds_left !== null) {
    parts.push(trans.__('%1 left', humanSpan(training.seconds_left, trans)));
  }
  return parts.join(' · ');
}

function details({ batch_size, logs, optimizer }: Training, trans: Trans): string {
  return [
    ...(batch_size === null ? [] : [trans.__('batch size %1', batch_size)]),
    ...[...logs].map(([name, value]) => `${name} ${humanMetric(value)}`),
    ...(optimizer === null ? [] : [optimizer])
  ].join(' · ');
}
