import * as React from 'react';

import type { Evidence } from '../wire';

/** Facts with their sources. */
export function EvidenceList(props: EvidenceList.IProps): React.JSX.Element {
  const { facts, empty } = props;
  if (facts.length === 0) {
    return <div className="jp-TfGuard-quiet">{empty}</div>;
  }
  return (
    <ul className="jp-TfGuard-list">
      {facts.map(({ source, text, raw }, index) => (
        <li key={index} className="jp-TfGuard-fact">
          <span className="jp-TfGuard-source">{source}</span>
          <span>
            {text}
            {raw && <code className="jp-TfGuard-raw">{raw}</code>}
          </span>
        </li>
      ))}
    </ul>
  );
}

export namespace EvidenceList {
  export interface IProps {
    readonly facts: readonly Evidence[];
    readonly empty: string;
  }
}
