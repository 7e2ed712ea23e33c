import * as React from 'react';

import { CodeBlock } from '../parts/CodeBlock';
import { Section } from '../parts/Section';
import type { Advice } from '../wire';
import type { Trans } from '../trans';

/** What to change, most effective first, with code for this run if there is some. */
export function AdviceList(props: AdviceList.IProps): React.JSX.Element {
  const { advice, copy, trans } = props;
  return (
    <Section name="Advice" title={trans.__('What to do')}>
      {advice.length === 0 ? (
        <div className="jp-TfGuard-quiet">{trans.__('No advice for this case yet.')}</div>
      ) : (
        <ol className="jp-TfGuard-steps">
          {advice.map(({ title, text, code }, index) => (
            <li key={index}>
              <b>{title}</b> {text}
              {code !== null && <CodeBlock code={code} copy={copy} />}
            </li>
          ))}
        </ol>
      )}
    </Section>
  );
}

export namespace AdviceList {
  export interface IProps {
    readonly advice: readonly Advice[];
    readonly copy: CodeBlock.ICopy;
    readonly trans: Trans;
  }
}
