import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { DeathNotice } from '../postmortem/DeathNotice';
import { readCrashes } from '../wire';
import type { CrashEntry } from '../wire';

import { emission, KERNEL } from './deathRig';
import { sample, trans } from './samples';

describe('DeathNotice of deaths by the hundred', () => {
  let shown: string[];
  let open: Set<object>;
  let fetch: ReturnType<typeof vi.fn<(id: string) => Promise<CrashEntry>>>;
  let onDeath: ReturnType<typeof vi.fn<(entry: CrashEntry) => void>>;
  let notice: DeathNotice;
  let crashes: CrashEntry[];

  beforeEach(() => {
    vi.useFakeTimers();
    shown = [];
    open = new Set();
    crashes = readCrashes(sample('crashes'));
    fetch = vi.fn(async (id: string) => ({ ...crashes[0], id, kernel_id: id }));
    onDeath = vi.fn();
    const notifier = {
      show: (_kind: string, message: string) => {
        shown.push(message);
        const toast = {};
        open.add(toast);
        return () => void open.delete(toast);
      }
    };
    notice = new DeathNotice({ fetch, notifier, onDeath, trans });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  it('keeps one notice of a kernel that dies again and again', async () => {
    fetch.mockImplementation(async id => ({ ...crashes[0], id, kernel_id: KERNEL }));
    for (let number = 0; number < 20; number++) {
      void notice.onEmission(emission({ id: `id-${number}`, kernel_id: KERNEL }));
      await vi.advanceTimersByTimeAsync(3_000);
    }
    expect(onDeath).toHaveBeenCalledTimes(20);
    expect(open.size).toBe(1);
  });

  it('joins the notices of many kernels that die at once', async () => {
    for (let number = 0; number < 50; number++) {
      void notice.onEmission(emission({ id: `id-${number}`, kernel_id: `k${number}` }));
    }
    await vi.advanceTimersByTimeAsync(3_000);
    expect(onDeath).toHaveBeenCalledTimes(50);
    expect(open.size).toBe(6);
    expect(shown.at(-1)).toContain('And 44 more in the TF Guard panel.');
  });
});
