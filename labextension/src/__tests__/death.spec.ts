import { Signal } from '@lumino/signaling';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { DeathNotice } from '../postmortem/DeathNotice';
import { watchRestartDialogs } from '../postmortem/RestartDialog';
import type { AnyDialog, IOpenSession } from '../postmortem/RestartDialog';
import { DEATH_SCHEMA_ID, readCrashes } from '../wire';
import type { CrashEntry } from '../wire';

import { sample, trans } from './samples';

const KERNEL = '6f2b8a52-0f5e-4c5e-9d0b-3b7c1d4e9a10';

interface IToast {
  kind: string;
  message: string;
  id: string;
  isGone: boolean;
}

function emission(change: object = {}): { schema_id: string } {
  return { schema_id: DEATH_SCHEMA_ID, ...sample('event'), ...change };
}

describe('DeathNotice', () => {
  let toasts: IToast[];
  let fetch: ReturnType<typeof vi.fn<(id: string) => Promise<CrashEntry>>>;
  let onDeath: ReturnType<typeof vi.fn<(entry: CrashEntry) => void>>;
  let onCounted: ReturnType<typeof vi.fn<() => void>>;
  let notice: DeathNotice;
  let crashes: CrashEntry[];

  beforeEach(() => {
    vi.useFakeTimers();
    vi.spyOn(console, 'debug').mockImplementation(() => undefined);
    toasts = [];
    crashes = readCrashes(sample('crashes'));
    fetch = vi.fn(async (id: string) => ({ ...crashes[0], id }));
    onDeath = vi.fn();
    onCounted = vi.fn();
    const notifier = {
      show: (kind: string, message: string, id: string) => {
        const toast = { kind, message, id, isGone: false };
        toasts.push(toast);
        return () => {
          toast.isGone = true;
        };
      }
    };
    notice = new DeathNotice({ fetch, notifier, onCounted, onDeath, trans });
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

describe('watchRestartDialogs', () => {
  let dialogs: { widgetAdded: Signal<object, AnyDialog> };
  let found: Signal<object, CrashEntry>;
  let known: CrashEntry | null;
  let session: IOpenSession;
  let isGuarding: boolean;
  const openReport = vi.fn();
  const readCrashes_ = vi.fn(async () => undefined);
  let entry: CrashEntry;

  beforeEach(() => {
    vi.useFakeTimers();
    dialogs = { widgetAdded: new Signal<object, AnyDialog>({}) };
    found = new Signal<object, CrashEntry>({});
    known = null;
    isGuarding = true;
    entry = readCrashes(sample('crashes'))[0]!;
    session = {
      path: 'course/train.ipynb',
      name: 'train.ipynb',
      kernelId: KERNEL,
      status: 'autorestarting'
    };
    watchRestartDialogs({
      dialogs,
      isGuarding: () => isGuarding,
      notice: { found, take: () => known } as unknown as DeathNotice,
      openReport,
      readCrashes: readCrashes_,
      sessions: () => [session],
      trans
    });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  function open(sentence = 'Le noyau de course/train.ipynb est mort.'): {
    node: HTMLElement;
    resolve: ReturnType<typeof vi.fn>;
  } {
    const node = document.createElement('dialog');
    const body = document.createElement('span');
    body.className = 'jp-Dialog-body';
    body.textContent = sentence;
    const footer = document.createElement('div');
    footer.className = 'jp-Dialog-footer';
    node.append(body, footer);
    const resolve = vi.fn();
    dialogs.widgetAdded.emit({ node, resolve, disposed: new Signal<object, void>({}) } as never);
    return { node, resolve };
  }

  it('writes a known cause at once, and its button closes the dialog', () => {
    known = entry;
    const { node, resolve } = open();
    expect(node.textContent).toContain(`Cause: ${entry.title}`);
    node.querySelector('button')?.click();
    expect(resolve).toHaveBeenCalledWith(0);
    expect(openReport).toHaveBeenCalledWith(entry.id);
  });

  it('fills in a cause that comes later', () => {
    const { node } = open();
    expect(node.textContent).toContain('finding out');
    found.emit({ ...entry, kernel_id: 'another' });
    found.emit({ ...entry, kernel_alive: true });
    expect(node.textContent).toContain('finding out');
    found.emit(entry);
    expect(node.textContent).toContain('Cause:');
  });

  it('asks the server itself if no event comes, and gives up in the end', async () => {
    const { node } = open();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(readCrashes_).toHaveBeenCalledTimes(3);
    expect(node.textContent).toContain('has no report');
  });

  it.each([
    ['another notebook', () => open('The kernel for other.ipynb appears to have died.')],
    [
      'a kernel that is not restarting',
      () => {
        session = { ...session, status: 'idle' };
        return open();
      }
    ],
    [
      'a server without our part',
      () => {
        isGuarding = false;
        return open();
      }
    ]
  ])('leaves the dialog alone for %s', (_name, make) => {
    expect(make().node.querySelector('.jp-TfGuard-Cause')).toBeNull();
  });
});
