import { beforeEach, describe, expect, it, vi } from 'vitest';

import { askControlChannel } from '../widget/control';
import type { IFuture, IKernel } from '../widget/host';
import { button, draw, el, FakeModel, inNotebook, settled, told } from './widgetRig';
import type { Json } from './widgetRig';

inNotebook();

describe("the page's own connection to the kernel", () => {
  const RATE = { request: 'rate', hertz: 0 } as const;
  let asked: Json[];
  let futures: Json[];
  /** What the kernel answers; null: nothing, as while native code holds its interpreter. */
  let content: Json;

  const connection = (more: Partial<IKernel> = {}): IKernel => ({
    clientId: 'c1',
    username: 'ann',
    createComm: vi.fn(),
    sendControlMessage: (message, expectsReply, disposeOnDone) => {
      asked.push(message);
      expect([expectsReply, disposeOnDone]).toEqual([true, true]);
      const future: IFuture = { onReply: () => undefined, dispose: vi.fn() };
      futures.push(future);
      if (content !== null) {
        void Promise.resolve().then(() => future.onReply({ content }));
      }
      return future;
    },
    ...more
  });

  beforeEach(() => {
    asked = [];
    futures = [];
    content = { status: 'ok', hertz: 0 };
  });

  it('is asked on the control channel, in the words of the server', async () => {
    expect(await askControlChannel(connection(), RATE)).toEqual({
      isDone: true,
      hertz: 0,
      state: null
    });
    expect(asked[0]).toMatchObject({
      channel: 'control',
      header: { msg_type: 'tfguard_request', session: 'c1', username: 'ann' },
      content: RATE
    });
    await askControlChannel(connection(), RATE);
    expect(asked[0].header.msg_id).not.toBe(asked[1].header.msg_id);
    futures.forEach(({ dispose }) => expect(dispose).toHaveBeenCalledOnce());
  });

  it('is no way where it is none, where the kernel is dead, or where no answer comes', async () => {
    expect(await askControlChannel(undefined, RATE)).toBeNull();
    expect(await askControlChannel({ createComm: vi.fn() }, RATE)).toBeNull();
    const dead = connection({
      sendControlMessage: () => {
        throw new Error('Kernel is dead');
      }
    });
    expect(await askControlChannel(dead, RATE)).toBeNull();
    content = { status: 7 };
    expect(await askControlChannel(connection(), RATE)).toBeNull();
    content = null;
    const silent = askControlChannel(connection(), RATE);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(await silent).toBeNull();
    futures.forEach(({ dispose }) => expect(dispose).toHaveBeenCalledOnce());
    expect(vi.getTimerCount()).toBe(0);
  });

  it('takes the pause and the word that the panel is looked at, and no subshell is asked', async () => {
    const model = new FakeModel({ ...told, panel: 'p1' });
    const kernel = connection({ supportsSubshells: true });
    model.widget_manager = { kernel };
    content = { status: 'ok', state: told.state };
    draw(model);
    await settled();
    expect(asked[0].content).toEqual({ request: 'here', panel: 'p1', view: model.sent[0].view });
    content = { status: 'ok', hertz: 0 };
    button().click();
    await settled();
    expect(asked[1].content).toEqual(RATE);
    expect(el.textContent).toContain('Paused. Values of');
    expect(model.sent).toHaveLength(1);
    expect(kernel.createComm).not.toHaveBeenCalled();
  });

  it('is followed by the subshell where the control channel is silent', async () => {
    content = null;
    const createComm = vi.fn(() => {
      throw new Error('no comms here');
    });
    const model = new FakeModel({ ...told, panel: 'p1' });
    model.widget_manager = { kernel: connection({ supportsSubshells: true, createComm }) };
    draw(model);
    button().click();
    await vi.advanceTimersByTimeAsync(4_000);
    expect(createComm).toHaveBeenCalledTimes(2); // for the word that it is looked at, too
    expect(el.textContent).toContain('The kernel answers once no cell runs.');
  });
});
