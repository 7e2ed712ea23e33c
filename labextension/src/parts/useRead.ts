import type { ISignal } from '@lumino/signaling';
import * as React from 'react';

/**
 * What `read` says now. The component is drawn again at an emission only if `read` says another thing than before, so
 * the same must come back, not its like, while nothing is to be drawn.
 */
export function useRead<T>(signal: ISignal<unknown, unknown> | undefined, read: () => T): T {
  const follow = React.useCallback(
    (changed: () => void) => {
      const slot = (): void => changed();
      signal?.connect(slot);
      return () => {
        signal?.disconnect(slot);
      };
    },
    [signal]
  );
  return React.useSyncExternalStore(follow, read);
}
