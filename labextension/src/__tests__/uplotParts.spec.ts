import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type * as Made from '../chart/timeChart';

const require = createRequire(import.meta.url);
const smaller = require('../../scripts/uplotParts.cjs') as (source: string) => string;
const whole = readFileSync(require.resolve('uplot/dist/uPlot.esm.js'), 'utf8');

const OPTIONS = {
  height: 200,
  formatValue: (value: number) => `${value} B`,
  formatTick: (value: number) => `${value}`,
  formatTime: (seconds: number) => `${seconds} s`,
  endLabels: null,
  syncName: 'both'
};

const FIRST: Made.IChartData = {
  points: { times: [0, 10, 20, 30, 40, 50], values: [5, 60, null, null, 20, 90] },
  lines: [{ times: [0, 25, 50], values: [10, 40, null] }],
  range: [0, 60],
  limit: { value: 100, label: 'limit' },
  marks: [{ time: 12, label: '[1]' }],
  end: { time: 50, label: 'died' },
  forecast: { from: [50, 90], to: [60, 100] },
  description: 'a line'
};
const ZOOMED: Made.IChartData = { ...FIRST, zoom: [15, 45], forecast: null };
const ONE_POINT: Made.IChartData = {
  ...FIRST,
  points: { times: [7], values: [3] },
  lines: [{ times: [7], values: [4] }]
};

let drawn: string[] = [];

/** Writes down whatever is called or set on it. */
function recorder(name: string): object {
  return new Proxy(
    {},
    {
      get: (_, key) => {
        switch (key) {
          case 'toJSON':
            return () => name;
          case 'measureText':
            return (text: string) => ({ width: text.length * 6 });
          default:
            return (...given: unknown[]) => {
              drawn.push(`${name}.${String(key)}(${JSON.stringify(given)})`);
            };
        }
      },
      set: (_, key, value) => {
        drawn.push(`${name}.${String(key)} = ${JSON.stringify(value)}`);
        return true;
      }
    }
  );
}

/** A browser's parts that jsdom lacks; frames are drawn at once. */
function furnish(): void {
  const seen = class {
    constructor(private readonly _tell: (entries: object[]) => void) {}
    observe(): void {
      this._tell([{ isIntersecting: true }]);
    }
    disconnect(): void {
      drawn.push('disconnected');
    }
  };
  vi.stubGlobal('IntersectionObserver', seen);
  vi.stubGlobal('ResizeObserver', seen);
  vi.stubGlobal('matchMedia', () => new EventTarget());
  vi.stubGlobal('requestAnimationFrame', (draw: () => void) => {
    queueMicrotask(draw);
    return 1;
  });
  vi.stubGlobal(
    'Path2D',
    class {
      constructor(from?: object) {
        return recorder(from === undefined ? 'path' : 'path that goes on');
      }
    }
  );
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(recorder('canvas') as never);
  vi.spyOn(HTMLElement.prototype, 'getBoundingClientRect').mockReturnValue(
    new DOMRect(0, 0, 220, 170)
  );
}

/** All that one drawing of a chart shows and tells, as text: what is painted, elements, answers. */
async function life(source: string): Promise<string[]> {
  drawn = [];
  const width = vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(300);
  document.body.replaceChildren();
  vi.resetModules();
  const body = source.replace('export { uPlot as default };', 'return uPlot;');
  // eslint-disable-next-line @typescript-eslint/no-implied-eval
  vi.doMock('uplot', () => ({ default: new Function(body)() as unknown }));
  const { TimeChart } = await import('../chart/timeChart');
  const hosts = [0, 1].map(() => document.body.appendChild(document.createElement('div')));
  const charts = hosts.map(
    host =>
      new TimeChart(host, {
        ...OPTIONS,
        onZoom: span => drawn.push(`zoom ${JSON.stringify(span)}`)
      })
  );
  const settled = async (): Promise<void> => {
    await new Promise(resolve => setTimeout(resolve));
    drawn.push(document.body.innerHTML);
  };
  const mouse = async (type: string, x: number, on?: EventTarget): Promise<void> => {
    const over = hosts[0].querySelector('.u-over')!;
    (on ?? over).dispatchEvent(
      new MouseEvent(type, { bubbles: true, clientX: x, clientY: 50, movementX: 5 })
    );
    await settled();
  };
  for (const data of [ONE_POINT, FIRST, ZOOMED, FIRST]) {
    charts.forEach(chart => chart.update(data));
    await settled();
  }
  for (const key of ['ArrowLeft', 'ArrowLeft', 'ArrowRight', '+', 'Escape', 'ArrowLeft']) {
    hosts[0].dispatchEvent(new KeyboardEvent('keydown', { key }));
    await settled();
  }
  for (const [type, x] of [
    ['mouseenter', 20],
    ['mousemove', 20],
    ['mousemove', 120],
    ['mousedown', 120],
    ['mousemove', 180]
  ] as const) {
    await mouse(type, x);
  }
  await mouse('mouseup', 180, document);
  await mouse('mouseleave', 300);
  await mouse('dblclick', 100);
  width.mockReturnValue(420);
  charts.forEach(chart => chart.update(FIRST));
  await settled();
  charts.forEach(chart => chart.dispose());
  await settled();
  return drawn;
}

beforeEach(furnish);
afterEach(() => {
  vi.doUnmock('uplot');
  vi.unstubAllGlobals();
});

describe('uplotParts', () => {
  it('leaves a chart as it was: what is painted, where the cursor is, what dragging asks for', async () => {
    const [all, fewer] = [await life(whole), await life(smaller(whole))];
    // A key in and out, dragging in both charts, whose cursor is one, and the double click.
    expect(all.filter(line => line.startsWith('zoom '))).toHaveLength(5);
    expect(all.filter(line => line.startsWith('canvas.stroke')).length).toBeGreaterThan(50);
    expect(fewer).toEqual(all);
  });

  it('says so when uPlot is another than the one it knows', () => {
    expect(() => smaller(whole.replace('= legend.show;', '= true;'))).toThrow('uPlot has changed');
  });
});
