import * as React from 'react';

import { CodeBlock } from './CodeBlock';

/**
 * A message with a sign and a color, and how to fix the problem. If there is a `rest`, which changes over time,
 * screen readers announce only the first sentence.
 */
export function Notice(props: Notice.IProps): React.JSX.Element {
  const { kind, text, rest, fix, children } = props;
  const isWhole = rest === undefined;
  return (
    <div className={`jp-TfGuard-Notice jp-mod-${kind}`} role={isWhole ? 'alert' : undefined}>
      <span className="jp-TfGuard-Notice-sign" aria-hidden="true">
        {SIGNS[kind]}
      </span>
      <div className="jp-TfGuard-Notice-body">
        <div>
          {isWhole ? (
            text
          ) : (
            <>
              <span role="alert">{text}</span> {rest}
            </>
          )}
        </div>
        {typeof fix === 'string' && <div className="jp-TfGuard-quiet">{fix}</div>}
        {children}
      </div>
    </div>
  );
}

const SIGNS = { warning: '▲', error: '✕' } as const;

export namespace Notice {
  export interface IProps {
    readonly kind: keyof typeof SIGNS;
    readonly text: string;
    readonly rest?: string;
    readonly fix?: string | null;
    readonly children?: React.ReactNode;
  }
}

/** A notice with a command to copy. */
export function CommandNotice(props: CommandNotice.IProps): React.JSX.Element {
  const { text, command, copy } = props;
  return (
    <Notice kind="warning" text={text}>
      <CodeBlock code={command} copy={copy} />
    </Notice>
  );
}

export namespace CommandNotice {
  export interface IProps {
    readonly text: string;
    readonly command: string;
    readonly copy: CodeBlock.ICopy;
  }
}
