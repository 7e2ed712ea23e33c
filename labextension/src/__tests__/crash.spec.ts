// @vitest-environment node
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { CrashNotice } from '../postmortem/CrashNotice';
import type { CrashEntry } from '../wire';

import { emission, KERNEL } from './crashRig';
import { crashEntries, trans } from './samples';

interface IToast {
  kind: string;
  message: string;
  id: string;
  isGone: boolean;
}

describe('CrashNotice', () => {
  let toasts: IToast[];
  let fetch: ReturnType<typeof vi.fn<(id: string) => Promise<CrashEntry>>>;
  let onCrash: ReturnType<typeof vi.fn<(entry: CrashEntry) => void>>;
  let notice: CrashNotice;
  let crashes: CrashEntry[];
  /** Whether the kernel's notebook is open here. */
  let isOpen: boolean;

  beforeEach(() => {
    vi.useFakeTimers();
    vi.spyOn(console, 'debug').mockImplementation(() => undefined);
    toasts = [];
    crashes = crashEntries();
    fetch = vi.fn(async (id: string) => ({ ...crashes[0], id }));
    onCrash = vi.fn();
    isOpen = false;
    const notifier = {
      show: (kind: string, message: string, id: string) => {
        const toast = { kind, message, id, isGone: false };
        toasts.push(toast);
        return () => {
          toast.isGone = true;
        };
      }
    };
    notice = new CrashNotice({ fetch, hasNotebook: () => isOpen, notifier, onCrash, trans });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  async function announce(change: object = {}): Promise<void> {
    const handled = notice.onEmission(emission(change));
    await vi.runAllTimersAsync();
    await handled;
  }

  it('shows the cause of a crash once', async () => {
    await announce();
    await announce();
    expect(toasts).toMatchObject([
      { kind: 'error', message: 'The kernel of train.ipynb died: Container memory limit.' }
    ]);
    expect(onCrash).toHaveBeenCalledTimes(1);
  });

  it('removes the notification once the report was read in another page', async () => {
    await announce();
    const { id } = toasts[0];
    const entry = { ...crashes[0], id };
    notice.onCrashesRead([{ ...entry, unread: true }]);
    expect(toasts.map(toast => toast.isGone)).toEqual([false]);
    notice.onCrashesRead([{ ...entry, unread: false }]);
    expect(toasts.map(toast => toast.isGone)).toEqual([true]);
  });

  it('removes notifications of reports that are not ready once the list has them', async () => {
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

  it('ignores other events, and survives one that it cannot read', async () => {
    await notice.onEmission({ schema_id: 'https://events.jupyter.org/other' });
    await notice.onEmission(emission({ id: 7 }));
    expect(toasts).toEqual([]);
  });

  it('only warns if a child process died', async () => {
    fetch.mockResolvedValue(crashes[1]);
    await announce({ kernel_alive: true });
    expect(toasts[0]).toMatchObject({ kind: 'warning' });
    expect(toasts[0]?.message).toContain('The kernel is still running.');
    expect(notice.take(KERNEL)).toBeNull();
  });

  it('reports a hang for a kernel that was restarted while it hung', async () => {
    fetch.mockResolvedValue({ ...crashes[0], cause: 'hang', short_title: 'Stood still' });
    await announce();
    expect(toasts[0]?.message).toBe('The kernel of train.ipynb hung until it was stopped.');
  });

  it('retries for a report that is not ready yet', async () => {
    fetch.mockRejectedValueOnce(new Error('404'));
    await announce();
    expect(fetch).toHaveBeenCalledTimes(2);
    expect(toasts[0]?.message).toContain('Container memory limit');
  });

  it('shows the crash even if its report never becomes available', async () => {
    fetch.mockRejectedValue(new Error('404'));
    await announce();
    expect(toasts).toMatchObject([
      { kind: 'error', message: 'A kernel died. Its report is not ready yet.' }
    ]);
  });

  it('replaces it with the cause when the list has the report', async () => {
    fetch.mockRejectedValue(new Error('503'));
    await announce({ id: 'late' });
    notice.onCrashesRead([{ ...crashes[0], id: 'late', unread: true }]);
    expect(toasts.map(({ message, isGone }) => [message, isGone])).toEqual([
      ['A kernel died. Its report is not ready yet.', true],
      ['The kernel of train.ipynb died: Container memory limit.', false]
    ]);
  });

  it('leaves a crash to the dialog that JupyterLab shows for an open notebook', async () => {
    isOpen = true;
    const handled = notice.onEmission(emission());
    await vi.advanceTimersByTimeAsync(3_000);
    await handled;
    expect(toasts).toEqual([]);
    expect(notice.take(KERNEL)?.title).toBe(crashes[0].title);
    await vi.runAllTimersAsync();
    expect(toasts).toEqual([]);
  });

  it('leaves a crash to a dialog that is already open', async () => {
    isOpen = true;
    notice.found.connect((_, entry) => notice.take(entry.kernel_id ?? ''));
    await announce();
    expect(toasts).toEqual([]);
  });

  it('shows a crash whose dialog does not appear', async () => {
    isOpen = true;
    await announce();
    expect(toasts.map(toast => toast.message)).toEqual([
      'The kernel of train.ipynb died: Container memory limit.'
    ]);
    expect(onCrash).toHaveBeenCalledTimes(1);
  });

  it('shows many unread crashes in one notification', () => {
    const many = Array.from({ length: 50 }, (_, index) => ({ ...crashes[0], id: `id-${index}` }));
    notice.onCrashesRead(many);
    notice.onCrashesRead(many);
    expect(toasts.map(toast => toast.message)).toEqual([
      'The kernel of train.ipynb died: Container memory limit. The TF Guard panel shows 49 more.'
    ]);
  });

  it('does not show crashes that were read', () => {
    notice.onCrashesRead(crashes.filter(entry => !entry.unread));
    expect(toasts).toEqual([]);
  });

  it('keeps one notification for a kernel that dies repeatedly', async () => {
    await announce({ id: 'first' });
    await announce({ id: 'second' });
    expect(toasts.map(toast => toast.isGone)).toEqual([true, false]);
  });

  it('removes the notification when the report is opened', async () => {
    await announce();
    notice.dismiss(toasts[0].id);
    expect(toasts[0]?.isGone).toBe(true);
  });

  it('stays within what JupyterLab shows of a message', () => {
    notice.onCrashesRead([{ ...crashes[0], notebook_path: `${'x'.repeat(300)}.ipynb` }]);
    expect(toasts[0]?.message.length).toBeLessThan(140);
    expect(toasts[0]?.message).toContain('…xxxx.ipynb');
  });

  it('passes a crash to one dialog only, and only while it is new', async () => {
    await announce({ id: 'first' });
    expect(notice.take(KERNEL)?.id).toBe('first');
    expect(notice.take(KERNEL)).toBeNull();
    await announce({ id: 'second' });
    vi.advanceTimersByTime(60_000);
    expect(notice.take(KERNEL)).toBeNull();
  });
});
