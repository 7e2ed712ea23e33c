/** Texts about a fit, shared by the panel and the widget. */
import { humanMetric, humanRate } from '../units';
import { clock, humanSpan } from '../when';
import type { Training } from '../wire';
import type { Trans } from '../trans';

/** Completed fraction of the run, or null if its length is unknown. */
export function doneFraction(training: Training): number | null {
  const { epoch, epochs, step, steps, active, ended, refused } = training;
  if (refused) return null;
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

/** `fit · sequential`, or what a training loop is called: code has a name, a loop has none. */
export function nameText({ kind, model_name }: Training, trans: Trans): string {
  return isLoop(kind) ? trans.__('Training loop') : [kind, model_name].filter(Boolean).join(' · ');
}

function isLoop(kind: string): boolean {
  return kind === 'loop';
}

/** `epoch 3 of 10 · step 219 of 313`. */
export function positionText(training: Training, trans: Trans): string {
  const { epoch, epochs, refused, step, steps } = training;
  if (refused) return trans.__('not started: it needs more memory than is available');
  const parts: string[] = [];
  if (epoch !== null) {
    parts.push(
      epochs === null ? trans.__('epoch %1', epoch) : trans.__('epoch %1 of %2', epoch, epochs)
    );
  }
  if (step !== null) {
    parts.push(steps === null ? trans.__('step %1', step) : trans.__('step %1 of %2', step, steps));
  }
  if (isLoop(training.kind) && step === null) {
    parts.push(trans.__('steps unknown'));
  }
  return parts.join(' · ');
}

/** `4.2 steps/s · 9 min left`, or the time of its end. */
export function paceText(training: Training, trans: Trans): string {
  if (!training.active) {
    return training.ended === null || training.refused
      ? ''
      : trans.__('ended %1', clock(training.ended, true));
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

/** `batch size 32 · loss 0.412 · Adam`. */
export function detailsText({ batch_size, logs, optimizer }: Training, trans: Trans): string {
  return [
    ...(batch_size === null ? [] : [trans.__('batch size %1', batch_size)]),
    ...Object.entries(logs).map(([name, value]) => `${name} ${humanMetric(value)}`),
    ...(optimizer === null ? [] : [optimizer])
  ].join(' · ');
}
