import type { ISignal } from '@lumino/signaling';
import * as React from 'react';

/**
 * Returns the value of `read` and redraws the component when a signal changes it. Only primitive values: React reads
 * the value several times per render and loops if each call returns a new object.
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
