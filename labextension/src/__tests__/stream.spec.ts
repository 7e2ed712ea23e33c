// @vitest-environment node
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { GuardStream } from '../stream';
import type { StreamMessage } from '../wire';

import { sampleText } from './samples';

class FakeSocket {
  static readonly made: FakeSocket[] = [];
  onopen: (() => void) | null = null;
  onclose: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  readonly sent: string[] = [];
  isClosed = false;

  constructor(readonly url: string) {
    FakeSocket.made.push(this);
  }

  send(text: string): void {
    this.sent.push(text);
  }

  close(): void {
    this.isClosed = true;
  }
}

function made(index: number): FakeSocket {
  const socket = FakeSocket.made[index];
  if (socket === undefined) {
    throw new Error(`Socket ${index} was not opened.`);
  }
  return socket;
}

function newStream(settings: Partial<GuardStream.ISettings> = {}): GuardStream {
  return new GuardStream({
    wsUrl: 'ws://127.0.0.1:8888/user/ann/',
    appendToken: false,
    token: '',
    WebSocket: FakeSocket as unknown as typeof WebSocket,
    ...settings
  });
}

const WATCH = {
  kernel_id: 'k1',
  rate_hertz: 2,
  chart_hertz: 10,
  detail: 'panel',
  visible: true
} as const;

describe('GuardStream', () => {
  let stream: GuardStream;

  beforeEach(() => {
    vi.useFakeTimers();
    FakeSocket.made.length = 0;
    stream = newStream();
  });

  afterEach(() => {
    stream.dispose();
    vi.useRealTimers();
  });

  it('opens below the base URL, with the token only where it is wanted', () => {
    stream.start();
    expect(made(0).url).toBe('ws://127.0.0.1:8888/user/ann/tfguard/api/stream');
    const other = newStream({ appendToken: true, token: 'a&b', wsUrl: 'wss://host/x' });
    other.start();
    expect(made(1).url).toBe('wss://host/x/tfguard/api/stream?token=a%26b');
    other.dispose();
  });

  it('keeps a request made before the socket opened, and sends it then', () => {
    stream.start();
    stream.watch({ ...WATCH, rate_hertz: 5 });
    stream.watch(WATCH);
    expect(made(0).sent).toEqual([]);
    made(0).onopen?.();
    expect(made(0).sent.map(text => JSON.parse(text))).toEqual([{ type: 'watch', ...WATCH }]);
  });

  it('sends a change immediately, and the same request only once', () => {
    stream.watch(WATCH);
    stream.start();
    made(0).onopen?.();
    stream.watch({ ...WATCH });
    stream.watch({ ...WATCH, visible: false });
    expect(made(0).sent).toHaveLength(2);
    expect(JSON.parse(made(0).sent[1] ?? '')).toMatchObject({ visible: false });
  });

  it('reconnects with increasing delays, and repeats its request', () => {
    const states: boolean[] = [];
    stream.connectionChanged.connect((_, isOpen) => states.push(isOpen));
    stream.watch(WATCH);
    stream.start();
    made(0).onopen?.();
    made(0).onclose?.();
    vi.advanceTimersByTime(999);
    expect(FakeSocket.made).toHaveLength(1);
    vi.advanceTimersByTime(1);
    made(1).onclose?.();
    vi.advanceTimersByTime(1_999);
    expect(FakeSocket.made).toHaveLength(2);
    vi.advanceTimersByTime(1);
    made(2).onopen?.();
    expect(made(2).sent).toHaveLength(1);
    expect(states).toEqual([true, false, true]);
    made(2).onclose?.();
    vi.advanceTimersByTime(1_000);
    expect(FakeSocket.made).toHaveLength(4);
  });

  it('closes a silent socket, and opens another immediately', () => {
    const states: boolean[] = [];
    stream.connectionChanged.connect((_, isOpen) => states.push(isOpen));
    stream.watch(WATCH);
    stream.start();
    stream.reopen(); // not open yet: it is at work already
    expect(FakeSocket.made).toHaveLength(1);
    made(0).onopen?.();
    stream.reopen();
    expect(made(0).isClosed).toBe(true);
    made(1).onopen?.();
    expect(made(1).sent).toEqual(made(0).sent);
    expect(states).toEqual([true, false, true]);
  });

  it('does not wait forever for a socket to open', () => {
    stream.start();
    vi.advanceTimersByTime(10_000);
    expect(made(0).isClosed).toBe(true);
    vi.advanceTimersByTime(1_000);
    made(1).onopen?.();
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.made).toHaveLength(2);
  });

  it('never waits longer than half a minute', () => {
    stream.start();
    for (let index = 0; index < 10; index += 1) {
      made(index).onclose?.();
      vi.advanceTimersByTime(30_000);
    }
    expect(FakeSocket.made).toHaveLength(11);
  });

  it('emits messages', () => {
    const messages: StreamMessage[] = [];
    stream.message.connect((_, message) => messages.push(message));
    stream.start();
    made(0).onopen?.();
    made(0).onmessage?.({ data: sampleText('tick') });
    expect(messages.map(message => message.type)).toEqual(['tick']);
  });

  it('opens nothing more once it is disposed', () => {
    stream.start();
    made(0).onopen?.();
    made(0).onclose?.();
    stream.dispose();
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.made).toHaveLength(1);
  });
});
