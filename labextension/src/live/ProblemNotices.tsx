import * as React from 'react';

import { Notice } from '../parts/Notice';
import { dayAndTime } from '../when';
import type { Problem } from '../wire';
import type { Trans } from '../words';

import { DismissedContext } from './dismissedProblems';

/** What of tfguard itself does not work, or did not a while ago: then with its time, and until it is dismissed. */
export function ProblemNotices(props: ProblemNotices.IProps): React.JSX.Element {
  const { problems, now, trans } = props;
  const dismissed = React.useContext(DismissedContext);
  return (
    <>
      {problems
        .filter(problem => dismissed?.has(problem) !== true)
        .map(problem => (
          <Notice key={problem.what} kind="warning" text={problem.what} fix={problem.fix}>
            {problem.noted_at !== null && (
              <div className="jp-TfGuard-quiet">
                {trans.__('Noted %1', when(problem.noted_at, now, trans))}
                {dismissed !== null && (
                  <>
                    {' · '}
                    <button
                      type="button"
                      className="jp-TfGuard-link"
                      onClick={() => dismissed.add(problem)}
                    >
                      {trans.__('Dismiss')}
                    </button>
                  </>
                )}
              </div>
            )}
          </Notice>
        ))}
    </>
  );
}

function when(seconds: number, now: number, trans: Trans): string {
  return dayAndTime(new Date(seconds * 1000).toISOString(), now, trans);
}

export namespace ProblemNotices {
  export interface IProps {
    readonly problems: readonly Problem[];
    /** Unix seconds. */
    readonly now: number;
    readonly trans: Trans;
  }
}
