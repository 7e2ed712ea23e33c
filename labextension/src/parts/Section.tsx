import * as React from 'react';

/** A titled part of the panel or of a report. `aside` stands beside the title, in plain letters. */
export function Section(props: Section.IProps): React.JSX.Element {
  const { title, aside, hint, name, children } = props;
  const id = React.useId();
  return (
    <section className={`jp-TfGuard-Section jp-TfGuard-${name}`} aria-labelledby={id}>
      <h3 className="jp-TfGuard-heading" id={id} title={hint}>
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
    readonly aside?: string | undefined;
    /** Shown over the title, where it may be cut short. */
    readonly hint?: string | undefined;
    /** Last part of the class name. */
    readonly name: string;
    readonly children: React.ReactNode;
  }
}
