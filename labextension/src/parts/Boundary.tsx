import * as React from 'react';

import type { Trans } from '../trans';

import { Notice } from './Notice';

const ReloadContext = React.createContext<React.ReactNode>(null);

/** Content that can be reloaded after an error in one section; each section is inside a `Boundary`. */
export function Reloadable(props: Reloadable.IProps): React.JSX.Element {
  const { children, label, trans } = props;
  const [count, setCount] = React.useState(0);
  return (
    <ReloadContext.Provider
      value={
        <Notice kind="error" text={trans.__('This section stopped working.')}>
          <button type="button" className="jp-TfGuard-button" onClick={() => setCount(count + 1)}>
            {label}
          </button>
        </Notice>
      }
    >
      <Boundary key={count}>{children}</Boundary>
    </ReloadContext.Provider>
  );
}

export namespace Reloadable {
  export interface IProps {
    /** Label of the button. */
    readonly label: string;
    readonly trans: Trans;
    readonly children: React.ReactNode;
  }
}

/** Limits an error to one section: shows a notice with a reload button in its place. */
export class Boundary extends React.Component<React.PropsWithChildren, { hasFailed: boolean }> {
  static override contextType = ReloadContext;
  declare context: React.ReactNode;
  override state = { hasFailed: false };

  static getDerivedStateFromError(): { hasFailed: boolean } {
    return { hasFailed: true };
  }

  override componentDidCatch(error: unknown, { componentStack }: React.ErrorInfo): void {
    console.error('jupyter-tfguard: a section stopped working.', error, componentStack);
  }

  override render(): React.ReactNode {
    return this.state.hasFailed ? this.context : this.props.children;
  }
}
