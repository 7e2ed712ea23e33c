/** The ways to ask a kernel while a cell runs, in the order in which they are tried. */
import { askControlChannel, askServer, askSubshell } from './control';
import type { ControlRequest } from './control';
import type { IKernel } from './host';
import type { Answer } from './state';

type Way = (request: ControlRequest) => Promise<Answer | null>;

/**
 * The way that answered last comes first: that nobody answers on another takes seconds to know, each time.
 *
 * @param kernelId - null where it has no name that a server knows.
 * @param kernel - the page's connection to it, if it has one.
 */
export function waysToAsk(
  kernelId: () => string | null,
  kernel: () => IKernel | null | undefined
): Way {
  let ways: readonly Way[] = [
    request => askServer(kernelId(), request),
    request => askControlChannel(kernel(), request),
    request => askSubshell(kernel(), request)
  ];
  return async request => {
    for (const way of ways) {
      const answer = await way(request);
      if (answer !== null) {
        ways = [way, ...ways.filter(other => other !== way)];
        return answer;
      }
    }
    return null;
  };
}
