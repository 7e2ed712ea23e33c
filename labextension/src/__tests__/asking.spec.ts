import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { ApiError } from '../api';
import type { GuardModel } from '../model';

import { VIEW, newModel } from './modelRig';
import type { FakeApi, FakeStream } from './modelRig';
import { sample } from './samples';

vi.mock('@jupyterlab/services', () => ({ ServerConnection: {} }));

const HIDDEN = { ...VIEW, isPageVisible: false };
const CLOSED = { ...VIEW, isPanelVisible: false };

describe('the status', () => {
  let api: FakeApi;
  let stream: FakeStream;
  let model: GuardModel;

  /** How often it is asked for in this time. */
  const asked = async (seconds: number): Promise<number> => {
    const before = api.asked;
    await vi.advanceTimersByTimeAsync(seconds * 1000);
    return api.asked - before;
  };

  beforeEach(async () => {
    vi.useFakeTimers();
    ({ api, stream, model } = newModel());
    await model.start();
  });

  afterEach(() => {
    model.dispose();
    vi.useRealTimers();
  });

  describe('of a server that went away', () => {
    it.each(['locked', 'absent'] as const)('tells when it is %s', async failure => {
      api.failure = new ApiError(failure, 'no');
      stream.connectionChanged.emit(false);
      expect(model.server).toBe('away');
      await vi.advanceTimersByTimeAsync(30_000);
      expect(model.server).toBe(failure);
    });

    it('is asked for now and then, and never from a hidden page', async () => {
      api.failure = new ApiError('away', 'Failed to fetch');
      stream.connectionChanged.emit(false);
      expect(await asked(600)).toBeLessThanOrEqual(30);
      expect(await asked(60)).toBeGreaterThan(1);
      model.setView(HIDDEN);
      expect(await asked(600)).toBe(0);
    });

    it('is not asked for while an answer is due', async () => {
      stream.connectionChanged.emit(false);
      api.status = () => {
        api.asked += 1;
        return new Promise(() => undefined);
      };
      expect(await asked(600)).toBe(1);
    });

    it('leaves it away while a proxy answers for it, or nobody', async () => {
      stream.connectionChanged.emit(false);
      for (const failure of ['refused', 'away'] as const) {
        api.failure = new ApiError(failure, '503');
        await vi.advanceTimersByTimeAsync(30_000);
        expect([model.server, model.trouble]).toEqual(['away', null]);
      }
    });

    it('makes no values fresh that the stream does not bring', async () => {
      stream.say(sample('tick'));
      stream.connectionChanged.emit(false);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(model.server).toBe('away');
      expect(model.staleSeconds).toBeGreaterThan(50);
    });

    it('finds its way back once the stream is open again', async () => {
      api.failure = new ApiError('locked', '403');
      stream.connectionChanged.emit(false);
      await vi.advanceTimersByTimeAsync(30_000);
      api.failure = null;
      await vi.advanceTimersByTimeAsync(30_000);
      expect(model.server).toBe('away');
      const heard = vi.fn();
      model.crashesRead.connect(heard);
      stream.connectionChanged.emit(true);
      await vi.advanceTimersByTimeAsync(0);
      expect([model.server, model.trouble]).toEqual(['ok', null]);
      expect(heard).toHaveBeenCalledTimes(1);
    });
  });

  describe('of a server that is well', () => {
    let beat: ReturnType<typeof setInterval>;

    beforeEach(() => {
      stream.connectionChanged.emit(true);
      beat = setInterval(() => stream.say(sample('number')), 1_000);
    });

    afterEach(() => clearInterval(beat));

    it('is read once a minute while the panel is seen', async () => {
      const problem = { what: 'Disk full.', fix: 'Free some.', noted_at: null };
      api.problems = [problem];
      expect(await asked(70)).toBe(1);
      expect(model.problems).toEqual([problem]);
      expect(await asked(600)).toBeLessThanOrEqual(10);
    });

    it.each([
      ['the page is hidden', HIDDEN],
      ['the panel is closed', CLOSED]
    ])('is not read while %s, but when it is seen again', async (_what, view) => {
      model.setView(view);
      expect(await asked(600)).toBe(0);
      const before = api.asked;
      model.setView(VIEW);
      expect(api.asked - before).toBe(1);
    });

    it('is not read again at once by one who opens and closes', async () => {
      await vi.advanceTimersByTimeAsync(10_000);
      const before = api.asked;
      for (let turn = 0; turn < 10; turn++) {
        model.setView(CLOSED);
        model.setView(VIEW);
      }
      await vi.advanceTimersByTimeAsync(0);
      expect(api.asked - before).toBe(1);
    });

    it('says nothing of one answer that failed: the stream speaks', async () => {
      api.failure = new ApiError('refused', '502 Bad Gateway');
      expect(await asked(70)).toBe(1);
      expect([model.server, model.trouble]).toEqual(['ok', null]);
    });
  });
});
