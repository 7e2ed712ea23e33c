// @vitest-environment node
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { CrashNotice } from '../postmortem/CrashNotice';
import type { CrashEntry } from '../wire';

import { emission, KERNEL } from './crashRig';
import { crashEntries, trans } from './samples';

describe('CrashNotice of crashes by the hundred', () => {
  let open: Set<object>;
  let fetch: ReturnType<typeof vi.fn<(id: string) => Promise<CrashEntry>>>;
  let onCrash: ReturnType<typeof vi.fn<(entry: CrashEntry) => void>>;
  let notice: CrashNotice;
  let crashes: CrashEntry[];

  beforeEach(() => {
    vi.useFakeTimers();
    open = new Set();
    crashes = crashEntries();
    fetch = vi.fn(async (id: string) => ({ ...crashes[0], id, kernel_id: id }));
    onCrash = vi.fn();
    const notifier = {
      show: () => {
        const toast = {};
        open.add(toast);
        return () => void open.delete(toast);
      }
    };
    notice = new CrashNotice({ fetch, hasNotebook: () => false, notifier, onCrash, trans });
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
    expect(onCrash).toHaveBeenCalledTimes(20);
    expect(open.size).toBe(1);
  });

  it('covers the page with a few notices where many kernels die at once', async () => {
    for (let number = 0; number < 50; number++) {
      void notice.onEmission(emission({ id: `id-${number}`, kernel_id: `k${number}` }));
    }
    await vi.advanceTimersByTimeAsync(3_000);
    expect(onCrash).toHaveBeenCalledTimes(50);
    expect(open.size).toBe(5);
  });
});
