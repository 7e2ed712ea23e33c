import * as React from 'react';

import { DismissedContext } from '../parts/kept';
import { Notice } from '../parts/Notice';
import { dayAndTime } from '../when';
import type { Problem } from '../wire';
import type { Trans } from '../trans';

/** Problems of tfguard itself. A past problem has a time and can be dismissed. */
export function ProblemNotices(props: ProblemNotices.IProps): React.JSX.Element {
  const { problems, now, trans } = props;
  const dismissed = React.useContext(DismissedContext);
  return (
    <>
      {problems
        .filter(problem => dismissed?.has(keyOf(problem)) !== true)
        .map(problem => (
          <Notice key={problem.what} kind="warning" text={problem.what} fix={problem.fix}>
            {problem.noted_at !== null && (
              <div className="jp-TfGuard-quiet">
                {trans.__('Recorded %1', dayAndTime(problem.noted_at, now, trans))}
                {' · '}
                <button
                  type="button"
                  className="jp-TfGuard-link"
                  onClick={() => dismissed?.toggle(keyOf(problem))}
                >
                  {trans.__('Dismiss')}
                </button>
              </div>
            )}
          </Notice>
        ))}
    </>
  );
}

/** The same problem at a later time is a new one. */
function keyOf({ what, noted_at }: Problem): string {
  return `${noted_at} ${what}`;
}

export namespace ProblemNotices {
  export interface IProps {
    readonly problems: readonly Problem[];
    /** Unix seconds. */
    readonly now: number;
    readonly trans: Trans;
  }
}
