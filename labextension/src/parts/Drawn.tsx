import type { ISignal } from '@lumino/signaling';
import * as React from 'react';

import type { IDrawing } from './dom';

/** A drawing as a React component: made once, and drawn when the value has changed. */
export function Drawn<T>(props: Drawn.IProps<T>): React.JSX.Element {
  const { className, make, moved, read } = props;
  const host = React.useRef<HTMLDivElement>(null);
  const newest = React.useRef(read);
  const draw = React.useRef<() => void>(() => undefined);
  newest.current = read;
  React.useLayoutEffect(() => {
    if (host.current === null) {
      return undefined;
    }
    const node = host.current;
    const drawing = make(node);
    let drawn: T | undefined;
    draw.current = () => {
      const value = newest.current();
      if (value !== drawn && value !== undefined) {
        drawn = value;
        drawing.draw(value);
      }
    };
    const onMoved = (): void => draw.current();
    moved?.connect(onMoved);
    return () => {
      moved?.disconnect(onMoved);
      drawing.dispose?.();
      node.replaceChildren();
    };
  }, [moved]);
  React.useLayoutEffect(() => draw.current());
  return <div ref={host} className={className} />;
}

export namespace Drawn {
  export interface IProps<T> {
    readonly className?: string;
    readonly make: (host: HTMLElement) => IDrawing<T>;
    /** Draws without redrawing the component. */
    readonly moved?: ISignal<unknown, unknown> | undefined;
    /** Undefined where there is nothing to draw at the moment. */
    readonly read: () => T | undefined;
  }
}
