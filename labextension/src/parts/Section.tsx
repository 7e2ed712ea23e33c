import * as React from 'react';

import { FoldingContext } from './kept';

/** A titled part of the panel or of a report. `aside` stands beside the title, in plain letters. */
export function Section(props: Section.IProps): React.JSX.Element {
  const { title, aside, hint, name, children } = props;
  const id = React.useId();
  const folding = React.useContext(FoldingContext);
  const isFolded = folding?.has(title) === true;
  const words = (
    <span>
      {title}
      {aside !== undefined && <span className="jp-TfGuard-aside"> · {aside}</span>}
    </span>
  );
  return (
    <section className={`jp-TfGuard-Section jp-TfGuard-${name}`} aria-labelledby={id}>
      <h3 className="jp-TfGuard-heading" id={id} title={hint}>
        {folding === null ? (
          words
        ) : (
          <button
            type="button"
            className="jp-TfGuard-fold"
            aria-expanded={!isFolded}
            onClick={() => folding.toggle(title)}
          >
            {words}
            <span aria-hidden="true">{isFolded ? '▸' : '▾'}</span>
          </button>
        )}
      </h3>
      {!isFolded && children}
    </section>
  );
}

export namespace Section {
  export interface IProps {
    /** Of all parts that stand together, each has its own. */
    readonly title: string;
    readonly aside?: string | undefined;
    /** Shown over the title, where it may be cut short. */
    readonly hint?: string | undefined;
    /** Last part of the class name. */
    readonly name: string;
    readonly children: React.ReactNode;
  }
}
