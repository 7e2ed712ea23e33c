import { Signal } from '@lumino/signaling';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { CrashNotice } from '../postmortem/CrashNotice';
import { watchRestartDialogs } from '../postmortem/restartDialog';
import type { AnyDialog, IOpenSession } from '../postmortem/restartDialog';
import type { CrashEntry } from '../wire';

import { KERNEL } from './crashRig';
import { crashEntries, trans } from './samples';

describe('watchRestartDialogs', () => {
  let dialogs: { widgetAdded: Signal<object, AnyDialog> };
  let found: Signal<object, CrashEntry>;
  let known: CrashEntry | null;
  let session: IOpenSession;
  let others: IOpenSession[];
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
    others = [];
    entry = crashEntries()[0]!;
    session = {
      path: 'course/train.ipynb',
      name: 'train.ipynb',
      kernelId: KERNEL,
      status: 'autorestarting'
    };
    watchRestartDialogs({
      dialogs,
      isGuarding: () => isGuarding,
      notice: { found, take: () => known } as unknown as CrashNotice,
      openReport,
      readCrashes: readCrashes_,
      sessions: () => [...others, session],
      trans
    });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  function open(sentence = 'Le noyau de course/train.ipynb est mort.'): {
    node: HTMLElement;
    resolve: ReturnType<typeof vi.fn>;
    disposed: Signal<object, void>;
  } {
    const node = document.createElement('dialog');
    const body = document.createElement('span');
    body.className = 'jp-Dialog-body';
    body.textContent = sentence;
    const footer = document.createElement('div');
    footer.className = 'jp-Dialog-footer';
    node.append(body, footer);
    const resolve = vi.fn();
    const disposed = new Signal<object, void>({});
    dialogs.widgetAdded.emit({ node, resolve, disposed } as never);
    return { node, resolve, disposed };
  }

  it('writes a known cause at once, and its button closes the dialog', () => {
    known = entry;
    const { node, resolve } = open();
    expect(node.textContent).toContain(`Cause (certain): ${entry.title}`);
    node.querySelector('button')?.click();
    expect(resolve).toHaveBeenCalledWith(0);
    expect(openReport).toHaveBeenCalledWith(entry.id);
  });

  it('says that the report could not be saved', () => {
    known = { ...entry, unsaved: 'No space left on device.' };
    expect(open().node.textContent).toContain('No space left on device.');
  });

  it('fills in a cause that comes later', () => {
    const { node } = open();
    expect(node.textContent).toContain('looking for the cause');
    found.emit({ ...entry, kernel_id: 'another' });
    found.emit({ ...entry, kernel_alive: true });
    expect(node.textContent).toContain('looking for the cause');
    found.emit(entry);
    expect(node.textContent).toContain('Cause (certain):');
  });

  it('asks the server itself if no event comes, and gives up in the end', async () => {
    const { node } = open();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(readCrashes_).toHaveBeenCalledTimes(3);
    expect(node.textContent).toContain('has no report');
  });

  it('fills in a cause that comes after it had given up', async () => {
    const { node } = open();
    await vi.advanceTimersByTimeAsync(20_000);
    found.emit(entry);
    expect(node.textContent).toContain('Cause (certain):');
    expect(node.textContent).not.toContain('has no report');
  });

  it('fills in the second dialog of a kernel after the first was closed', () => {
    const first = open();
    const second = open();
    first.disposed.emit();
    found.emit(entry);
    expect(second.node.textContent).toContain('Cause (certain):');
  });

  it('fills in each dialog of a kernel that has two', () => {
    const both = [open(), open()];
    found.emit(entry);
    for (const { node } of both) {
      expect(node.textContent).toContain('Cause (certain):');
    }
  });

  it.each([
    ['path', { path: 'train.ipynb', name: 'train.ipynb' }, 'course/train.ipynb'],
    ['name', { path: 'elsewhere', name: 'in.ipynb' }, 'train.ipynb']
  ])('distinguishes a notebook from one whose %s ends with its own', (_what, other, named) => {
    others = [{ ...session, ...other, kernelId: 'another' }];
    const { node } = open(`Le noyau de ${named} est mort.`);
    found.emit({ ...entry, kernel_id: 'another' });
    expect(node.textContent).toContain('looking for the cause');
    found.emit(entry);
    expect(node.textContent).toContain('Cause (certain):');
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
