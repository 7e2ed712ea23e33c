/** A page of a notebook with the widget in it, and the kernel at its other end; the chart only remembers. */
import { afterEach, beforeEach, vi } from 'vitest';

import widget from '../widget';
import { sample } from './samples';

export const charts = { drawn: [] as unknown[], disposed: 0 };

vi.mock('../chart/timeChart', () => ({
  TimeChart: class {
    draw(data: unknown): void {
      charts.drawn.push(data);
    }
    dispose(): void {
      charts.disposed += 1;
    }
  }
}));

// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Json = any;

export const widgetSample = sample('widget');
export const NOW = widgetSample.state.time * 1000;

/** What anywidget gives, and the kernel at the other end. */
export class FakeModel {
  sent: Json[] = [];
  listeners = new Set<(content: unknown) => void>();
  constructor(private readonly _values: Json = widgetSample) {}

  get(name: string): unknown {
    return this._values[name];
  }

  send(content: unknown): void {
    this.sent.push(content);
  }

  on(_event: string, listener: (content: unknown) => void): void {
    this.listeners.add(listener);
  }

  off(_event: string, listener: (content: unknown) => void): void {
    this.listeners.delete(listener);
  }

  receive(content: unknown): void {
    this.listeners.forEach(listener => listener(content));
  }
}

export let el: HTMLElement;
let undraw: () => void;

export function draw(model = new FakeModel()): FakeModel {
  undraw = widget.render({ model: model, el });
  return model;
}

/** The view is closed; nothing happens where that was done before. */
export function leave(): void {
  undraw();
  undraw = () => undefined;
}

export const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

/** Each test has a page of its own, and leaves none. */
export function inNotebook(): void {
  beforeEach(() => {
    vi.useFakeTimers({ now: NOW });
    vi.stubGlobal('matchMedia', () => ({
      matches: false,
      addEventListener: vi.fn(),
      removeEventListener: vi.fn()
    }));
    charts.drawn.length = 0;
    charts.disposed = 0;
    el = document.createElement('div');
    document.body.append(el);
    undraw = () => undefined;
  });

  afterEach(() => {
    leave();
    el.remove();
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });
}
