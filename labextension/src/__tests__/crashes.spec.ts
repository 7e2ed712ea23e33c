// @vitest-environment node
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { Crashes } from '../crashes';
import type { CrashEntry } from '../wire';

import { crashEntries } from './samples';
import { PATIENT } from './patience';

/** A list that comes when the test lets it come. */
class SlowApi {
  readonly lists: ((entries: readonly CrashEntry[]) => void)[] = [];
  readonly marks: (() => void)[] = [];

  crashes(): Promise<CrashEntry[]> {
    return new Promise(resolve => this.lists.push(entries => resolve([...entries])));
  }

  markRead(): Promise<void> {
    return new Promise(resolve => this.marks.push(resolve));
  }
}

describe('Crashes', () => {
  const entries = crashEntries().map(entry => ({ ...entry, unread: true }));
  const id = entries[0].id;
  let api: SlowApi;
  let crashes: Crashes;

  beforeEach(() => {
    api = new SlowApi();
    crashes = new Crashes(api);
  });

  function isUnread(): boolean | undefined {
    return crashes.entries?.find(entry => entry.id === id)?.unread;
  }

  async function refresh(found = entries): Promise<void> {
    const read = crashes.refresh();
    api.lists.pop()?.(found);
    await read;
  }

  it('marks a report as read immediately, and requests the list again afterwards', async () => {
    await refresh();
    const before = crashes.refresh();
    const marked = crashes.markRead(id);
    expect(isUnread()).toBe(false);
    api.marks[0]();
    await vi.waitFor(() => expect(api.lists).toHaveLength(2), PATIENT);
    api.lists[0](entries);
    await before;
    expect(isUnread()).toBe(false);
    api.lists[1](entries.map(entry => ({ ...entry, unread: entry.id !== id })));
    await marked;
    expect(isUnread()).toBe(false);
  });

  it('has no list where it could not be read', async () => {
    const failing = new Crashes({
      crashes: () => Promise.reject(new Error('gone')),
      markRead: () => Promise.resolve()
    });
    expect(await failing.refresh()).toBeNull();
    expect(failing.trouble).toBe('gone');
  });

  it('ignores a list that was requested before the one that is shown', async () => {
    const early = crashes.refresh();
    const late = crashes.refresh();
    api.lists[1](entries);
    await late;
    api.lists[0]([]);
    await early;
    expect(crashes.entries).toHaveLength(entries.length);
  });
});
