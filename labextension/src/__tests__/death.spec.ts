import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { DeathNotice } from '../postmortem/DeathNotice';
import type { CrashEntry } from '../wire';

import { emission, KERNEL } from './deathRig';
import { crashEntries, trans } from './samples';

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
  /** Whether the kernel's notebook is open here. */
  let isOpen: boolean;

  beforeEach(() => {
    vi.useFakeTimers();
    vi.spyOn(console, 'debug').mockImplementation(() => undefined);
    toasts = [];
    crashes = crashEntries();
    fetch = vi.fn(async (id: string) => ({ ...crashes[0], id }));
    onDeath = vi.fn();
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
    notice = new DeathNotice({ fetch, hasNotebook: () => isOpen, notifier, onDeath, trans });
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
    await notice.onEmission({ schema_id: 'https://events.jupyter.org/other' });
    await notice.onEmission(emission({ id: 7 }));
    expect(toasts).toEqual([]);
  });

  it('warns only, where a child died and the kernel lives', async () => {
    fetch.mockResolvedValue(crashes[1]);
    await tell({ kernel_alive: true });
    expect(toasts[0]).toMatchObject({ kind: 'warning' });
    expect(toasts[0]?.message).toContain('The kernel survived.');
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

  it('puts the cause in its place when the list has the report', async () => {
    fetch.mockRejectedValue(new Error('503'));
    await tell({ id: 'late' });
    notice.onCrashesRead([{ ...crashes[0], id: 'late', unread: true }]);
    expect(toasts.map(({ message, isGone }) => [message, isGone])).toEqual([
      ['A kernel died. Its report cannot be read yet.', true],
      ['The kernel of train.ipynb died: Container memory limit.', false]
    ]);
  });

  it('leaves a death to the dialog of JupyterLab that comes for an open notebook', async () => {
    isOpen = true;
    const told = notice.onEmission(emission());
    await vi.advanceTimersByTimeAsync(3_000);
    await told;
    expect(toasts).toEqual([]);
    expect(notice.take(KERNEL)?.title).toBe(crashes[0].title);
    await vi.runAllTimersAsync();
    expect(toasts).toEqual([]);
  });

  it('leaves a death to a dialog that was there before', async () => {
    isOpen = true;
    notice.found.connect((_, entry) => notice.take(entry.kernel_id ?? ''));
    await tell();
    expect(toasts).toEqual([]);
  });

  it('shows a death whose dialog does not come', async () => {
    isOpen = true;
    await tell();
    expect(toasts.map(toast => toast.message)).toEqual([
      'The kernel of train.ipynb died: Container memory limit.'
    ]);
    expect(onDeath).toHaveBeenCalledTimes(1);
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

  it('hands a death to one dialog only, and only while it is new', async () => {
    await tell({ id: 'first' });
    expect(notice.take(KERNEL)?.id).toBe('first');
    expect(notice.take(KERNEL)).toBeNull();
    await tell({ id: 'second' });
    vi.advanceTimersByTime(60_000);
    expect(notice.take(KERNEL)).toBeNull();
  });
});
