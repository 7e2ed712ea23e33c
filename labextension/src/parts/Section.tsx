import * as React from 'react';

/** A titled part of the panel or of a report. `aside` stands beside the title, in plain letters. */
export function Section(props: Section.IProps): React.JSX.Element {
  const { title, aside, name, children } = props;
  return (
    <section className={`jp-TfGuard-Section jp-TfGuard-${name}`}>
      <h3 className="jp-TfGuard-heading">
        {title}
        {aside !== undefined && <span className="jp-TfGuard-aside"> · {aside}</span>}
      </h3>
      {children}
    </section>
  );
}

export namespace Section {
  export interface IProps {
    readonly title: string;
    readonly aside?: string;
    /** Last part of the class name. */
    readonly name: string;
    readonly children: React.ReactNode;
  }
}
