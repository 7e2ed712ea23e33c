// @vitest-environment node
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { ApiError } from '../api';
import type { GuardModel } from '../model';

import { KERNEL, VIEW, newModel } from './modelRig';
import type { FakeApi, FakeStream } from './modelRig';
import { sample } from './samples';

vi.mock('@jupyterlab/services', () => ({ ServerConnection: {} }));

describe('GuardModel', () => {
  let api: FakeApi;
  let stream: FakeStream;
  let model: GuardModel;

  beforeEach(() => {
    vi.useFakeTimers();
    ({ api, stream, model } = newModel());
  });

  afterEach(() => {
    model.dispose();
    vi.useRealTimers();
  });

  it('asks for the current kernel at the rate of the open panel', () => {
    expect(stream.lastWish).toEqual({
      kernel_id: KERNEL,
      rate_hertz: 2,
      chart_hertz: 10,
      detail: 'panel',
      visible: true
    });
  });

  it('asks for one number every two seconds while the panel is closed', () => {
    model.setView({ ...VIEW, isPanelVisible: false });
    expect(stream.lastWish).toMatchObject({ detail: 'status', visible: true });
  });

  it.each([
    ['the page is hidden', { ...VIEW, isPageVisible: false }],
    ['nothing of it is seen', { ...VIEW, isPanelVisible: false, isFollowed: false }]
  ])('asks for nothing while %s', (_name, view) => {
    model.setView(view);
    expect(stream.lastWish?.visible).toBe(false);
  });

  it('starts with the status, then listens', async () => {
    await model.start();
    expect(model.server).toBe('ok');
    expect(stream.isStarted).toBe(true);
    expect(model.crashes).toHaveLength(6);
    expect(model.kernel?.host.used_bytes).toBe(6563782656);
  });

  it('distinguishes a missing server extension from a server that does not respond, and retries', async () => {
    api.failure = new ApiError('absent', '404 Not Found');
    await model.start();
    expect(model.server).toBe('absent');
    expect(stream.isStarted).toBe(false);
    api.failure = new ApiError('away', 'no answer');
    await vi.advanceTimersByTimeAsync(15_000);
    expect(model.server).toBe('away');
    api.failure = null;
    await vi.advanceTimersByTimeAsync(15_000);
    expect(model.server).toBe('ok');
    expect(stream.isStarted).toBe(true);
  });

  it('takes over history and ticks of the current kernel', () => {
    stream.say(sample('history'));
    stream.say(sample('tick'));
    expect(model.series.times).toHaveLength(61);
    expect(model.kernel?.training?.epoch).toBe(3);
    expect(model.others).toHaveLength(2);
    expect(model.marks.map(mark => mark.label)).toEqual(['[7] load', '[12] fit']);
  });

  it('keeps what the kernel held of each card, from history and ticks', () => {
    const tick = sample('tick');
    const { gpus } = sample('status');
    const [device] = gpus.devices;
    tick.gpus = gpus;
    device.gpu_uuid = 'GPU-4f1b2c9a-7d3e-4a51-9c80-1e5d2f6b8a07';
    device.holders = [{ ...device.holders[0], is_this: true, used_bytes: 7 }];
    stream.say(sample('history'));
    stream.say(tick);
    expect([...model.gpuSeries.keys()]).toEqual([device.gpu_uuid]);
    expect(model.gpuSeries.get(device.gpu_uuid)?.values).toEqual([19541000192, null, 7]);
    device.holders = [];
    tick.time += 1;
    stream.say(tick);
    expect(model.gpuSeries.get(device.gpu_uuid)?.values.at(-1)).toBe(0);
    model.setTarget({ path: 'eda.ipynb', kernelId: 'other' });
    expect(model.gpuSeries.size).toBe(0);
  });

  it('forgets the old kernel when the user goes to another, and ignores its late ticks', () => {
    stream.say(sample('tick'));
    model.setTarget({ path: 'eda.ipynb', kernelId: 'other' });
    stream.say(sample('tick'));
    stream.say(sample('history'));
    expect(model.kernel).toBeNull();
    expect(model.series.times).toEqual([]);
    expect(stream.lastWish?.kernel_id).toBe('other');
  });

  it('does not take the late tick of a notebook without a kernel for an answer', () => {
    model.setTarget({ path: 'eda.ipynb', kernelId: null });
    stream.say({ ...sample('history'), rows: [], kernel_id: KERNEL });
    model.setTarget({ path: 'course/train.ipynb', kernelId: KERNEL });
    stream.say({ ...sample('tick'), kernel: null });
    expect(model.hasAnswer).toBe(false);
    expect(model.others).toHaveLength(2);
    stream.say({ ...sample('history'), rows: [], gpu_rows: {}, marks: [] });
    stream.say({ ...sample('tick'), kernel: null });
    expect(model.hasAnswer).toBe(true);
  });

  it('breaks the line where a new process took over', () => {
    const tick = sample('tick');
    stream.say(tick);
    tick.kernel.pid = 4800;
    tick.kernel.host.time += 4;
    tick.kernel.host.used_bytes = 60_000_000;
    stream.say(tick);
    expect(model.series.values).toEqual([6563782656, null, 60_000_000]);
  });

  it('keeps an unknown memory unknown', () => {
    const tick = sample('tick');
    tick.kernel.host.used_bytes = null;
    stream.say(tick);
    expect(model.series.values).toEqual([null]);
  });

  it('keeps the last values with their age while the server is away', async () => {
    await model.start();
    stream.say(sample('tick'));
    expect(model.staleSeconds).toBeNull();
    stream.connectionChanged.emit(false);
    vi.advanceTimersByTime(7_000);
    expect(model.server).toBe('away');
    expect(model.staleSeconds).toBeCloseTo(7);
    expect(model.kernel).not.toBeNull();
  });

  it('notices a stream that is open but silent', async () => {
    await model.start();
    stream.say(sample('tick'));
    vi.advanceTimersByTime(9_000);
    expect(stream.reopened).toBe(0);
    vi.advanceTimersByTime(6_000);
    expect(stream.reopened).toBe(1);
  });

  it('expects nothing while it asks for nothing', async () => {
    await model.start();
    model.setView({ ...VIEW, isPageVisible: false });
    vi.advanceTimersByTime(60_000);
    expect(stream.reopened).toBe(0);
  });

  it('takes a number between ticks: a point in the line, and new values of the kernel', () => {
    const changed = vi.fn();
    const moved = vi.fn();
    stream.say(sample('tick'));
    model.changed.connect(changed);
    model.moved.connect(moved);
    stream.say(sample('number'));
    expect(changed).not.toHaveBeenCalled();
    expect(moved).toHaveBeenCalledTimes(1);
    expect(model.series.times).toHaveLength(2);
    expect(model.kernel?.host.used_bytes).toBe(6564706304);
    expect(model.kernel?.training?.epoch).toBe(3);
    expect(model.brief?.host.forecast?.seconds_left).toBe(214.6);
  });

  it('follows a kernel by numbers alone while the panel is closed', () => {
    stream.say(sample('number'));
    expect(model.kernel).toBeNull();
    expect(model.brief?.watched).toBe(true);
    stream.say({ type: 'number', time: 1, kernel_id: KERNEL });
    expect(model.brief).toBeNull();
    model.setTarget({ path: 'eda.ipynb', kernelId: 'other' });
    stream.say(sample('number'));
    expect(model.brief).toBeNull();
  });

  it('emits the kernels whose memory grows toward a limit, including other notebooks', () => {
    const emitted = vi.fn();
    model.limitsAhead.connect((_, kernels) => emitted(kernels.map(kernel => kernel.notebook_path)));
    stream.say(sample('limits'));
    expect(emitted.mock.calls).toEqual([[['course/train.ipynb', 'pandas.ipynb']]]);
  });

  it('reads crashes again some seconds after a hint, once for many', async () => {
    await model.start();
    const emitted = vi.fn();
    model.crashesRead.connect(emitted);
    stream.say({ type: 'crashes' });
    stream.say({ type: 'crashes' });
    await vi.advanceTimersByTimeAsync(2_900);
    expect(emitted).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(200);
    expect(emitted).toHaveBeenCalledTimes(1);
  });

  it('asks again for what it missed when the first answer after a reconnection fails', async () => {
    await model.start();
    const emitted = vi.fn();
    model.crashesRead.connect(emitted);
    stream.connectionChanged.emit(false);
    api.failure = new ApiError('away', 'not up yet');
    stream.connectionChanged.emit(true);
    await vi.advanceTimersByTimeAsync(0);
    expect(emitted).not.toHaveBeenCalled();
    api.failure = null;
    stream.say(sample('tick'));
    await vi.advanceTimersByTimeAsync(5_000);
    expect(emitted).toHaveBeenCalledTimes(1);
  });

  it('reads the crashes again after a reconnection', async () => {
    await model.start();
    const emitted = vi.fn();
    model.crashesRead.connect(emitted);
    stream.connectionChanged.emit(false);
    stream.connectionChanged.emit(true);
    await vi.advanceTimersByTimeAsync(0);
    expect(emitted).toHaveBeenCalledTimes(1);
    expect(model.server).toBe('ok');
  });

  it('marks a report as read here and on the server', async () => {
    await model.start();
    const id = '20261121-021407-4711-k3f9';
    await model.markRead(id);
    expect(model.crashes?.find(entry => entry.id === id)?.unread).toBe(false);
    expect(api.read).toEqual([id]);
  });

  it('hides memory that ran out once dismissed, each kind for itself, and shows the next', () => {
    const tick = sample('tick');
    stream.say(tick);
    expect(model.outOfMemory).toEqual([]);
    const oom = { time: 1795227201, execution_count: 11, lines: ['a', 'b', 'c'] };
    tick.kernel.gpu_oom = tick.kernel.memory_stop = oom;
    stream.say(tick);
    const [stop, gpu] = model.outOfMemory;
    expect(stop).toEqual({ ...oom, kind: 'memory_stop' });
    expect(gpu).toEqual({ ...oom, kind: 'gpu_oom' });
    model.dismiss(gpu);
    stream.say(tick);
    expect(model.outOfMemory).toEqual([stop]);
    tick.kernel.gpu_oom = { ...oom, time: oom.time + 5 };
    stream.say(tick);
    expect(model.outOfMemory.map(({ time }) => time)).toEqual([oom.time, oom.time + 5]);
    tick.kernel.pid = 4800;
    tick.kernel.gpu_oom = tick.kernel.memory_stop = null;
    stream.say(tick);
    expect(model.outOfMemory).toEqual([]);
  });

  it('warns near the stop, not before, and until memory is well below', () => {
    const [number, tick] = [sample('number'), sample('tick')];
    const near = (free: number | null): boolean => {
      const { limit } = number.host;
      number.host.used_bytes = free === null ? null : limit.bytes - free * stop_bytes;
      stream.say(number);
      return model.isNearStop;
    };
    const { stop_bytes } = tick.kernel.guard.stop;
    stream.say(tick);
    expect([5, 4.1, 3.9, 5.9, null, 4.5, 6.1, 4.1].map(near)).toEqual(
      [false, false, true, true, true, true, false, false] // prettier-ignore
    );
    expect(near(2)).toBe(true);
    tick.kernel.guard.stop.state = 'paused';
    stream.say(tick);
    expect(near(2)).toBe(false);
    tick.kernel.guard.stop = null;
    stream.say(tick);
    expect(near(2)).toBe(false);
  });

  it('keeps the last state of a kernel between its death and the restart', () => {
    const tick = sample('tick');
    stream.say(tick);
    const { training } = model.kernel!;
    const gone = { ...tick.kernel, watched: false, unwatched_reason: 'starting', pid: null };
    stream.say({ ...tick, kernel: { ...gone, training: null } });
    stream.say({ ...sample('number'), watched: false });
    expect(model.kernel).toMatchObject({ watched: true, training, guard: { text: 'restarting' } });
    stream.say({ ...tick, kernel: { ...tick.kernel, training: null, pid: 4800 } });
    expect(model.kernel?.training).toBeNull();
    expect(model.kernel?.guard.text).toBe('guarding');
    stream.say({ ...tick, kernel: { ...gone, unwatched_reason: 'remote kernel' } });
    expect(model.kernel?.watched).toBe(false);
  });
});
