/** The panel of a page or a kernel that is older than what its charts keep. */
import './browserGaps';

import { UseSignal } from '@jupyterlab/ui-components';
import { act } from 'react';
import * as React from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { GpuChart } from '../live/gpu/GpuChart';
import { HostMemory } from '../live/HostMemory';
import type { GuardModel } from '../model';

import { newModel, KERNEL } from './modelRig';
import type { FakeStream } from './modelRig';
import { render } from './render';
import { sample, trans } from './samples';

const updates = vi.fn();

vi.mock('../chart/timeChart', () => ({
  TimeChart: class {
    draw = updates;
    dispose = vi.fn();
  }
}));

const HOUR = 3_600;
const DAY = 24 * HOUR;
const START = 1_795_000_000;
const MIB = 2 ** 20;
/** Between two samples, as it really is: five minutes are no multiple of it. */
const STEP = 1.0137;
const PHASES = [0, 0.2, 0.4, 0.6, 0.8];
const CARD = sample('status').gpus.devices[0];

/** What the server remembers: a row a minute at first, then one a step. */
function history(seconds: number, end: number): unknown {
  const rows: (readonly [number, number, null])[] = [];
  for (let time = end - seconds; time <= end; time += time < end - HOUR ? 60 : STEP) {
    rows.push([time, bytesAt(time), null]);
  }
  return {
    ...sample('history'),
    kernel_id: KERNEL,
    rows,
    marks: [],
    gpu_rows: { [CARD.gpu_uuid]: rows.map(row => row.slice(0, 2)) }
  };
}

function bytesAt(time: number): number {
  return (200 + (Math.floor(time) % 7)) * MIB;
}

/** A tick and the numbers after it, until the next second. */
function second(stream: FakeStream, time: number): void {
  const tick = sample('tick');
  tick.time = tick.kernel.host.time = time;
  tick.kernel.host.used_bytes = bytesAt(time);
  tick.gpus = sample('status').gpus;
  stream.say(tick);
  for (const part of [0.1, 0.5, 0.9]) {
    const number = sample('number');
    number.time = number.host.time = time + part;
    number.host.used_bytes = bytesAt(time + part);
    stream.say(number);
  }
}

function Charts({ model }: { model: GuardModel }): React.JSX.Element {
  return (
    <UseSignal signal={model.changed}>
      {() => (
        <div>
          <HostMemory model={model} trans={trans} />
          <GpuChart device={CARD} series={model.gpuSeries.get(CARD.gpu_uuid)} trans={trans} />
        </div>
      )}
    </UseSignal>
  );
}

describe('charts of a long history', () => {
  let errors: ReturnType<typeof vi.spyOn>;

  beforeEach(() => {
    vi.useFakeTimers();
    updates.mockClear();
    errors = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  for (const [name, seconds] of [
    ['an hour', HOUR],
    ['a day', DAY]
  ] as const) {
    it.each(PHASES)(`are drawn with ${name} behind them, at phase %f of the clock`, phase => {
      const { model, stream } = newModel();
      const opened = START + seconds + phase;
      vi.setSystemTime(opened * 1000);
      stream.say(history(seconds, opened));
      second(stream, opened);
      const shown = render(<Charts model={model} />);
      for (let passed = STEP; passed <= 20; passed += STEP) {
        vi.setSystemTime((opened + passed) * 1000);
        act(() => second(stream, opened + passed));
        expect(shown.text).toContain('MiB');
      }
      expect(errors.mock.calls).toEqual([]);
      const { points } = updates.mock.lastCall![0];
      expect(points.times[points.times.length - 1]).toBeGreaterThan(opened + 19);
      expect(points.times[0]).toBeGreaterThan(opened + 19 - 300);
      model.dispose();
    });
  }

  it.each(PHASES)('are drawn while a page stays open for eleven minutes, at phase %f', phase => {
    const { model, stream } = newModel();
    const opened = START + phase;
    second(stream, opened);
    const shown = render(<Charts model={model} />);
    for (let passed = STEP; passed <= 660; passed += STEP) {
      vi.setSystemTime((opened + passed) * 1000);
      act(() => second(stream, opened + passed));
    }
    expect(errors.mock.calls).toEqual([]);
    expect(shown.text).toContain('MiB');
    model.dispose();
  });
});
