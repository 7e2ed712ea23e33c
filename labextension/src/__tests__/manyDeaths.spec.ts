import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { DeathNotice } from '../postmortem/DeathNotice';
import { readCrashes } from '../wire';
import type { CrashEntry } from '../wire';

import { emission, KERNEL } from './deathRig';
import { sample, trans } from './samples';

describe('DeathNotice of deaths by the hundred', () => {
  const LOOP = 4;
  const MANY = 5;
  let shown: string[];
  let open: Set<object>;
  let fetch: ReturnType<typeof vi.fn<(id: string) => Promise<CrashEntry>>>;
  let onCounted: ReturnType<typeof vi.fn<() => void>>;
  let onDeath: ReturnType<typeof vi.fn<(entry: CrashEntry) => void>>;
  let notice: DeathNotice;
  let crashes: CrashEntry[];

  beforeEach(() => {
    vi.useFakeTimers();
    shown = [];
    open = new Set();
    crashes = readCrashes(sample('crashes'));
    fetch = vi.fn(
      async (id: string) =>
        crashes.find(entry => entry.id === id) ?? { ...crashes[0], id, kernel_id: id }
    );
    onCounted = vi.fn();
    onDeath = vi.fn();
    const notifier = {
      show: (_kind: string, message: string) => {
        shown.push(message);
        const toast = {};
        open.add(toast);
        return () => void open.delete(toast);
      }
    };
    notice = new DeathNotice({ fetch, notifier, onCounted, onDeath, trans });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  async function count(index: number, deaths: number): Promise<void> {
    const { id, kernel_id } = crashes[index];
    for (let number = 1; number <= deaths; number++) {
      const change = { id, kernel_id: kernel_id ?? `kernel-${number}`, deaths_count: number };
      void notice.onEmission(emission(change));
    }
    await vi.advanceTimersByTimeAsync(3_000);
  }

  it('shows one notice for a thousand counted deaths of many kernels', async () => {
    await count(MANY, 1_000);
    expect(shown).toEqual(['Kernels died: 950 × Killed, sender unknown.']);
    expect(fetch).toHaveBeenCalledTimes(1);
    expect(onCounted.mock.calls.length).toBeLessThan(4);
    expect(onDeath).not.toHaveBeenCalled();
  });

  it('shows one notice a minute for a kernel in a crash loop, and keeps one', async () => {
    for (let second = 0; second < 180; second += 3) {
      await count(LOOP, 1);
    }
    expect(shown.length).toBe(3);
    expect(shown[0]).toBe(
      'The kernel of train.ipynb died again and again: 995 deaths, most: Segmentation fault in native code.'
    );
    expect(open.size).toBe(1);
  });

  it('gives each dialog of a crash loop its cause', async () => {
    await count(LOOP, 1);
    expect(notice.take(KERNEL)?.group?.deaths_count).toBe(995);
    await count(LOOP, 1);
    expect(notice.take(KERNEL)?.group?.deaths_count).toBe(995);
  });

  it('tells of a group that lay unread once', async () => {
    notice.onCrashesRead([crashes[LOOP]]);
    await count(LOOP, 20);
    expect(shown).toHaveLength(1);
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
