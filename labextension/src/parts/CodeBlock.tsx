import * as React from 'react';

const RESULT_MS = 2_000;

/** Code, and a button that copies it. */
export function CodeBlock(props: CodeBlock.IProps): React.JSX.Element {
  const { code, copy } = props;
  return (
    <div className="jp-TfGuard-CodeBlock">
      <pre tabIndex={0}>
        <code>{code}</code>
      </pre>
      <CopyButton copy={copy} label={copy.label} text={() => Promise.resolve(code)} />
    </div>
  );
}

export namespace CodeBlock {
  export interface IProps {
    readonly code: string;
    readonly copy: ICopy;
  }

  /** Writes to the clipboard, with the labels of the button before and after. */
  export interface ICopy {
    readonly label: string;
    readonly done: string;
    readonly failed: string;
    readonly write: (text: string) => Promise<void>;
  }
}

/** Fetches a text, copies it, and shows the result for two seconds. */
export function CopyButton(props: CopyButton.IProps): React.JSX.Element {
  const { copy, label, text } = props;
  const [answer, setAnswer] = React.useState<string | null>(null);
  React.useEffect(() => {
    if (answer === null) {
      return undefined;
    }
    const timer = setTimeout(() => setAnswer(null), RESULT_MS);
    return () => clearTimeout(timer);
  }, [answer]);
  const onClick = (): void => {
    text()
      .then(copy.write)
      .then(
        () => setAnswer(copy.done),
        () => setAnswer(copy.failed)
      );
  };
  return (
    <button type="button" className="jp-TfGuard-button" onClick={onClick}>
      {answer ?? label}
    </button>
  );
}

export namespace CopyButton {
  export interface IProps {
    readonly copy: CodeBlock.ICopy;
    readonly label: string;
    readonly text: () => Promise<string>;
  }
}
