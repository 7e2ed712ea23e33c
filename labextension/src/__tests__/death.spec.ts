import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { DeathNotice } from '../postmortem/DeathNotice';
import { readCrashes } from '../wire';
import type { CrashEntry } from '../wire';

import { emission, KERNEL } from './deathRig';
import { sample, trans } from './samples';

interface IToast {
  kind: string;
  message: string;
  id: string;
  isGone: boolean;
}

describe('DeathNotice', () => {
  let toasts: IToast[];
  let fetch: ReturnType<typeof vi.fn<(id: string) => Promise<CrashEntry>>>;
  let onDeath: ReturnType<typeof vi.fn<(entry: CrashEntry) => void>>;
  let notice: DeathNotice;
  let crashes: CrashEntry[];

  beforeEach(() => {
    vi.useFakeTimers();
    vi.spyOn(console, 'debug').mockImplementation(() => undefined);
    toasts = [];
    crashes = readCrashes(sample('crashes'));
    fetch = vi.fn(async (id: string) => ({ ...crashes[0], id }));
    onDeath = vi.fn();
    const notifier = {
      show: (kind: string, message: string, id: string) => {
        const toast = { kind, message, id, isGone: false };
        toasts.push(toast);
        return () => {
          toast.isGone = true;
        };
      }
    };
    notice = new DeathNotice({ fetch, notifier, onDeath, trans });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  async function tell(change: object = {}): Promise<void> {
    const told = notice.onEmission(emission(change));
    await vi.runAllTimersAsync();
    await told;
  }

  it('tells the cause of a death once', async () => {
    await tell();
    await tell();
    expect(toasts).toMatchObject([
      { kind: 'error', message: 'The kernel of train.ipynb died: Container memory limit.' }
    ]);
    expect(onDeath).toHaveBeenCalledTimes(1);
  });

  it('takes the notification away once the report was read in another page', async () => {
    await tell();
    const { id } = toasts[0];
    const entry = { ...crashes[0], id };
    notice.onCrashesRead([{ ...entry, unread: true }]);
    expect(toasts.map(toast => toast.isGone)).toEqual([false]);
    notice.onCrashesRead([{ ...entry, unread: false }]);
    expect(toasts.map(toast => toast.isGone)).toEqual([true]);
  });

  it('takes away every word of reports that cannot be read yet, once the list has them', async () => {
    fetch.mockRejectedValue(new Error('busy'));
    const [first] = crashes;
    const found = ['id0', 'id1'].map(id => ({ ...first, id, kernel_id: `of ${id}`, unread: true }));
    for (const { id, kernel_id } of found) {
      void notice.onEmission(emission({ id, kernel_id }));
    }
    await vi.advanceTimersByTimeAsync(9_000);
    expect(toasts).toHaveLength(2);
    notice.onCrashesRead(found);
    expect(toasts.map(toast => toast.isGone)).toEqual([true, true, false]);
  });

  it('passes over events of others, and survives one that it cannot read', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    await notice.onEmission({ schema_id: 'https://events.jupyter.org/other' });
    await notice.onEmission(emission({ confidence: 'sure' }));
    expect(toasts).toEqual([]);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  it('warns only, where a child died and the kernel lives', async () => {
    fetch.mockResolvedValue(crashes[1]);
    await tell({ kernel_alive: true });
    expect(toasts[0]).toMatchObject({ kind: 'warning' });
    expect(toasts[0]?.message).toContain('The kernel lives on.');
    expect(notice.take(KERNEL)).toBeNull();
  });

  it('says of a kernel that was restarted while it stood still that it stood still', async () => {
    fetch.mockResolvedValue({ ...crashes[0], cause: 'hang', short_title: 'Stood still' });
    await tell();
    expect(toasts[0]?.message).toBe('The kernel of train.ipynb stood still until it ended.');
  });

  it('asks again for a report that is not there yet', async () => {
    fetch.mockRejectedValueOnce(new Error('404'));
    await tell();
    expect(fetch).toHaveBeenCalledTimes(2);
    expect(toasts[0]?.message).toContain('Container memory limit');
  });

  it('tells of the death even if its report never comes', async () => {
    fetch.mockRejectedValue(new Error('404'));
    await tell();
    expect(toasts).toMatchObject([
      { kind: 'error', message: 'A kernel died. Its report cannot be read yet.' }
    ]);
  });

  it('puts the cause in its place when the report comes late', async () => {
    const found = vi.fn();
    notice.found.connect((_, entry) => found(entry.id));
    fetch.mockRejectedValue(new Error('503'));
    const told = notice.onEmission(emission({ id: 'late' }));
    await vi.advanceTimersByTimeAsync(10_000);
    fetch.mockImplementation(async (id: string) => ({ ...crashes[0], id }));
    await vi.advanceTimersByTimeAsync(30_000);
    await told;
    expect(toasts.map(({ message, isGone }) => [message, isGone])).toEqual([
      ['A kernel died. Its report cannot be read yet.', true],
      ['The kernel of train.ipynb died: Container memory limit.', false]
    ]);
    expect(found.mock.calls).toEqual([['late']]);
    expect(onDeath).toHaveBeenCalledTimes(1);
  });

  it('takes a late report from the list as well, and tells of it once', async () => {
    fetch.mockRejectedValue(new Error('503'));
    const told = notice.onEmission(emission({ id: 'late' }));
    await vi.advanceTimersByTimeAsync(10_000);
    notice.onCrashesRead([{ ...crashes[0], id: 'late' }]);
    fetch.mockImplementation(async (id: string) => ({ ...crashes[0], id }));
    await vi.runAllTimersAsync();
    await told;
    expect(toasts.map(toast => toast.isGone)).toEqual([true, false]);
    expect(onDeath).not.toHaveBeenCalled();
    expect(fetch.mock.calls.length).toBeLessThan(8);
  });

  it('tells of many unread deaths in one notification', () => {
    const many = Array.from({ length: 50 }, (_, index) => ({ ...crashes[0], id: `id-${index}` }));
    notice.onCrashesRead(many);
    notice.onCrashesRead(many);
    expect(toasts.map(toast => toast.message)).toEqual([
      'The kernel of train.ipynb died: Container memory limit. And 49 more in the TF Guard panel.'
    ]);
  });

  it('keeps silent about deaths that were read', () => {
    notice.onCrashesRead(crashes.filter(entry => !entry.unread));
    expect(toasts).toEqual([]);
  });

  it('keeps one notification for a kernel that dies again and again', async () => {
    await tell({ id: 'first' });
    await tell({ id: 'second' });
    expect(toasts.map(toast => toast.isGone)).toEqual([true, false]);
  });

  it('takes the notification away when the report is opened', async () => {
    await tell();
    notice.dismiss(toasts[0].id);
    expect(toasts[0]?.isGone).toBe(true);
  });

  it('stays within what JupyterLab shows of a message', () => {
    notice.onCrashesRead([{ ...crashes[0], notebook_path: `${'x'.repeat(300)}.ipynb` }]);
    expect(toasts[0]?.message.length).toBeLessThan(140);
    expect(toasts[0]?.message).toContain('…xxxx.ipynb');
  });

  it('hands a death to one dialog only, and only while it is news', async () => {
    await tell({ id: 'first' });
    expect(notice.take(KERNEL)?.id).toBe('first');
    expect(notice.take(KERNEL)).toBeNull();
    await tell({ id: 'second' });
    vi.advanceTimersByTime(60_000);
    expect(notice.take(KERNEL)).toBeNull();
  });
});
