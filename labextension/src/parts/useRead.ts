import type { ISignal } from '@lumino/signaling';
import * as React from 'react';

/**
 * The value that `read` returns now. The component is drawn again after an emission if the value differs. Only plain values:
 * React reads the value several times for one drawing and never settles if a new object comes back each time.
 */
export function useRead<T extends string | number | boolean>(
  signal: ISignal<unknown, unknown> | undefined,
  read: () => T
): T {
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
