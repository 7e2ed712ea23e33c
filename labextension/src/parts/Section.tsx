import * as React from 'react';

import { FoldingContext } from './kept';

/** A section of the panel or of a report. `aside` follows the title in plain text. */
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
    /** Unique among the sections of one view. */
    readonly title: string;
    readonly aside?: string | undefined;
    /** Tooltip of the title, which may be truncated. */
    readonly hint?: string | undefined;
    /** Suffix of the CSS class name. */
    readonly name: string;
    readonly children: React.ReactNode;
  }
}
