import type { ISignal } from '@lumino/signaling';
import * as React from 'react';

/** Draw the component again at each emission, or at those that come later than `restMs` after the last. */
export function useSignal(signal: ISignal<unknown, unknown> | undefined, restMs = 0): void {
  const [, again] = React.useReducer((count: number) => count + 1, 0);
  React.useEffect(() => {
    let drawn = -Infinity;
    const slot = (): void => {
      const now = performance.now();
      if (now - drawn >= restMs) {
        drawn = now;
        again();
      }
    };
    signal?.connect(slot);
    return () => {
      signal?.disconnect(slot);
    };
  }, [signal, restMs]);
}
