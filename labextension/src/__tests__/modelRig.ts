/** The server at the model's other end: its stream and its routes. */
import { Signal } from '@lumino/signaling';

import { GuardModel } from '../model';
import type { CrashEntry, IWatch, Problem, Status, StreamMessage } from '../wire';

import { crashEntries, sample } from './samples';

export const KERNEL = '6f2b8a52-0f5e-4c5e-9d0b-3b7c1d4e9a10';
export const VIEW = {
  isPageVisible: true,
  isPanelVisible: true,
  isFollowed: true,
  rateHertz: 2,
  chartHertz: 10
};

export class FakeStream {
  readonly message = new Signal<this, StreamMessage>(this);
  readonly connectionChanged = new Signal<this, boolean>(this);
  readonly requests: IWatch[] = [];
  isStarted = false;
  reopened = 0;

  start(): void {
    this.isStarted = true;
  }

  watch(wanted: IWatch): void {
    this.requests.push(wanted);
  }

  reopen(): void {
    this.reopened += 1;
  }

  dispose(): void {
    this.isStarted = false;
  }

  get lastWish(): IWatch | undefined {
    return this.requests[this.requests.length - 1];
  }

  say(value: unknown): void {
    this.message.emit(structuredClone(value) as StreamMessage);
  }
}

export class FakeApi {
  failure: Error | null = null;
  problems: Problem[] = [];
  asked = 0;
  readonly read: string[] = [];

  async status(): Promise<Status> {
    this.asked += 1;
    if (this.failure !== null) {
      throw this.failure;
    }
    return { ...sample('status'), problems: this.problems };
  }

  async crashes(): Promise<CrashEntry[]> {
    return crashEntries().map(entry => ({
      ...entry,
      unread: entry.unread && !this.read.includes(entry.id)
    }));
  }

  async markRead(id: string): Promise<void> {
    this.read.push(id);
  }
}

/** A model of an open panel beside the sample's notebook, not started yet. */
export function newModel(): { api: FakeApi; stream: FakeStream; model: GuardModel } {
  const [api, stream] = [new FakeApi(), new FakeStream()];
  const model = new GuardModel({ api, stream });
  model.setView(VIEW);
  model.setTarget({ path: 'course/train.ipynb', kernelId: KERNEL });
  return { api, stream, model };
}
