import * as React from 'react';

/** A text in which some parts are highlighted: marks of what was removed, and parts that the user should check. */
export function Marked(props: Marked.IProps): React.JSX.Element {
  const { flagged, removed, text } = props;
  const pieces = React.useMemo(() => {
    const wanted = [...flagged, ...removed].filter(part => part !== '');
    // Longest first: a flagged text may contain a shorter one.
    const sorted = wanted.sort((a, b) => b.length - a.length).map(escaped);
    return sorted.length === 0 ? [text] : text.split(new RegExp(`(${sorted.join('|')})`));
  }, [flagged.join('\n'), removed.join('\n'), text]);
  return (
    <>
      {pieces.map((piece, index) =>
        index % 2 === 0 ? (
          piece
        ) : (
          <mark
            key={index}
            className={flagged.includes(piece) ? 'jp-TfGuard-suspicious' : 'jp-TfGuard-removed'}
          >
            {piece}
          </mark>
        )
      )}
    </>
  );
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

export namespace Marked {
  export interface IProps {
    readonly text: string;
    readonly removed: readonly string[];
    readonly flagged: readonly string[];
  }
}
