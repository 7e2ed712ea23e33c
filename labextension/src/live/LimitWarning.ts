/**
 * One warning per run that memory is about to end: a notification, for a user who looks elsewhere.
 * A run is one busy time of one kernel process. The warning goes when the run ends or memory falls.
 */
import type { Brief } from '../currentKernel';
import { fileName, humanBytes, shortName } from '../units';
import type { Trans } from '../words';

import { isLimitSoon, isNearLimit, limitFraction } from './memory';

/** Between two cells a kernel is idle for a moment; the run goes on. */
const IDLE_MS = 3_000;

/** The server may be away for a moment; a run unseen for longer may be over, and nothing is shown of it. */
const UNSEEN_MS = 30_000;

/** The page hears something every two seconds; when it did not for longer, it was hidden or asleep. */
const REST_MS = 10_000;

/** Parts of the limit: what counts as a rise since the run began, and as a fall from its height. */
const RISE_FRACTION = 0.01;
const FALL_FRACTION = 0.05;

interface IRun {
  readonly path: string | null;
  readonly pid: number | null;
  since: number | null;
  lowest: number;
  highest: number;
  idleSince: number | null;
  seenAt: number;
  /** How much of the time since then the page was hidden or asleep: the user looked at nothing else. */
  restedMs: number;
  isWarned: boolean;
  dismiss: (() => void) | null;
}

export class LimitWarning {
  constructor(private readonly _options: LimitWarning.IOptions) {}

  /**
   * Take the newest numbers, null where there are none, of the notebook that the user looks at, whose
   * kernel is `kernelId`. Numbers taken before are no news.
   */
  update(brief: Brief | null, path: string | null, kernelId: string | null): void {
    this._rest();
    this._endLost(path, kernelId);
    if (brief === null || brief === this._taken) {
      return;
    }
    this._taken = brief;
    const run = this._runOf(brief, path);
    const fraction = limitFraction(brief.host);
    if (run === null || fraction === null) {
      return;
    }
    run.lowest = Math.min(run.lowest, fraction);
    run.highest = Math.max(run.highest, fraction);
    const isRising = fraction >= run.lowest + RISE_FRACTION;
    if (isLimitSoon(brief.host) || (isNearLimit(brief.host) && isRising)) {
      if (!run.isWarned) {
        run.isWarned = true;
        run.dismiss = this._options.show(this._sentence(brief, path));
      }
    } else if (fraction <= run.highest - FALL_FRACTION) {
      dismiss(run);
    }
  }

  /** Take away what is shown, as when the user switches the warnings off. */
  clear(): void {
    this._runs.forEach((run, id) => this._end(id, run));
  }

  private _rest(): void {
    const now = Date.now();
    const passed = now - this._updatedAt;
    this._updatedAt = now;
    if (passed > REST_MS) {
      this._runs.forEach(run => (run.restedMs += passed));
    }
  }

  /** A notebook whose kernel was shut down or replaced, and what was out of sight for long. */
  private _endLost(path: string | null, kernelId: string | null): void {
    this._runs.forEach((run, id) => {
      if (path !== null && run.path === path && id !== kernelId) {
        this._end(id, run);
      } else if (Date.now() - run.seenAt - run.restedMs > UNSEEN_MS) {
        dismiss(run);
      }
    });
  }

  private _end(kernelId: string, run: IRun): void {
    dismiss(run);
    this._runs.delete(kernelId);
  }

  /** The run that goes on now; null while the kernel is idle. */
  private _runOf(brief: Brief, path: string | null): IRun | null {
    const { kernel_id, pid, run_since } = brief;
    const known = this._runs.get(kernel_id);
    const isBusy = brief.execution_state === 'busy';
    const isSeen = known !== undefined && Date.now() - known.seenAt <= UNSEEN_MS;
    if (known?.pid === pid && (isSeen || (isBusy && isSameRun(known, brief)))) {
      known.since = run_since;
      known.seenAt = Date.now();
      known.restedMs = 0;
      known.idleSince = isBusy ? null : (known.idleSince ?? Date.now());
      if (known.idleSince === null || Date.now() - known.idleSince < IDLE_MS) {
        return isBusy ? known : null;
      }
    }
    if (known !== undefined) {
      this._end(kernel_id, known);
    }
    if (!isBusy) {
      return null;
    }
    const run = {
      path,
      pid,
      since: run_since,
      lowest: Infinity,
      highest: 0,
      idleSince: null,
      seenAt: Date.now(),
      restedMs: 0,
      isWarned: false,
      dismiss: null
    };
    this._runs.set(kernel_id, run);
    return run;
  }

  /** No number that moves: the sentence does not change while it is shown. */
  private _sentence({ host }: Brief, path: string | null): string {
    const { trans } = this._options;
    const { forecast, limit } = host;
    const name = path === null ? trans.__('This kernel') : shortName(fileName(path));
    const words = [name, limit?.name ?? '', humanBytes(limit?.bytes ?? null)] as const;
    return forecast === null
      ? trans.__('%1: memory rises and is near the %2 of %3.', ...words)
      : trans.__('%1: memory will soon reach the %2 of %3.', ...words);
  }

  private readonly _runs = new Map<string, IRun>();
  private _taken: Brief | null = null;
  private _updatedAt = 0;
}

export namespace LimitWarning {
  export interface IOptions {
    /** Show a notification; returns what takes it away. */
    readonly show: (message: string) => () => void;
    readonly trans: Trans;
  }
}

/** Whether the server says that a run which was out of sight is the one that goes on now. */
function isSameRun(run: IRun, { run_since }: Brief): boolean {
  return run_since !== null && run.since === run_since;
}

function dismiss(run: IRun): void {
  run.dismiss?.();
  run.dismiss = null;
}
