import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import type { IComm, IKernel } from '../widget/host';
import { waysToAsk } from '../widget/ways';

const RATE = { request: 'rate', hertz: 0 } as const;
const DONE = { isDone: true, hertz: 0, state: null };

let onControl: number;
let isThereSubshell: boolean;

beforeEach(() => {
  vi.useFakeTimers();
  onControl = 0;
  isThereSubshell = true;
});

afterEach(() => vi.useRealTimers());

/** A kernel behind a server that drops our kind of message: only a comm arrives. */
const kernel: IKernel = {
  clientId: 'c1',
  username: 'ann',
  supportsSubshells: true,
  sendControlMessage: () => {
    onControl += 1;
    return { onReply: () => undefined, dispose: vi.fn() };
  },
  createComm: () => {
    const comm: IComm = {
      subshellStarted: isThereSubshell ? Promise.resolve() : Promise.reject(new Error('gone')),
      onMsg: () => undefined,
      open: vi.fn(),
      close: vi.fn(),
      send: () => comm.onMsg({ content: { data: { status: 'ok', hertz: 0 } } })
    };
    return comm;
  }
};

it('goes the way that answered last, and waits for no other', async () => {
  const ask = waysToAsk(
    () => null,
    () => kernel
  );
  const first = ask(RATE);
  await vi.advanceTimersByTimeAsync(3_100);
  expect(await first).toEqual(DONE);
  expect(await ask(RATE)).toEqual(DONE);
  expect(onControl).toBe(1);
});

it('tries the others again where that way is closed', async () => {
  const ask = waysToAsk(
    () => null,
    () => kernel
  );
  const first = ask(RATE);
  await vi.advanceTimersByTimeAsync(3_100);
  await first;
  isThereSubshell = false;
  const second = ask(RATE);
  await vi.advanceTimersByTimeAsync(3_100);
  expect(await second).toBeNull();
  expect(onControl).toBe(2);
});
