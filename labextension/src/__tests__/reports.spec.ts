import './browserGaps';

import { Notification } from '@jupyterlab/apputils';
import type { MainAreaWidget } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { reportTabId } from '../postmortem/ReportWidget';
import { Reports } from '../reports';
import type { CrashEntry } from '../wire';

import { crashEntries, sample, trans } from './samples';
import { PATIENT } from './patience';

describe('Reports', () => {
  const crashes = crashEntries();
  const report = sample('report');
  const read = vi.fn();
  const activateById = vi.fn();
  const onSettled = vi.fn();
  const model = {
    crashes: null as readonly CrashEntry[] | null,
    markRead: vi.fn(async () => undefined),
    refreshCrashes: vi.fn()
  };
  let tabs: MainAreaWidget[];

  beforeEach(() => {
    vi.resetAllMocks();
    model.crashes = null;
    model.markRead.mockResolvedValue(undefined);
    tabs = [];
  });

  afterEach(() => {
    Notification.dismiss();
    for (const tab of tabs) {
      tab.dispose();
    }
  });

  function make(isLab = true): Reports {
    const labShell = {
      activateById,
      add: (tab: MainAreaWidget) => {
        tabs.push(tab);
        Widget.attach(tab, document.body);
      }
    };
    return new Reports({
      api: { report: read, settings: { baseUrl: 'http://x/' } },
      model,
      labShell: isLab ? labShell : null,
      copy: { label: '', done: '', failed: '', write: async () => undefined },
      openPanel: () => undefined,
      onSettled,
      trans
    } as never);
  }

  function said(): string[] {
    return Notification.manager.notifications.map(({ message }) => message);
  }

  it('reads a report again that could not be read, and no other', async () => {
    const reports = make();
    read.mockRejectedValueOnce(new Error('gone for a moment'));
    reports.open('x');
    await vi.waitUntil(() => tabs[0].node.textContent?.includes('gone for a moment'), PATIENT);
    read.mockResolvedValue(report);
    reports.open('x');
    await vi.waitUntil(() => tabs[0].node.textContent?.includes(report.title), PATIENT);
    reports.open('x');
    expect(read).toHaveBeenCalledTimes(2);
    expect(tabs).toHaveLength(1);
  });

  it('asks once for a report that is still being read', () => {
    const reports = make();
    read.mockReturnValue(new Promise(() => undefined));
    reports.open('x');
    reports.open('x');
    expect(read).toHaveBeenCalledTimes(1);
  });

  it('shows a report that the server could not mark as read', async () => {
    model.markRead.mockRejectedValue(new Error('read only'));
    read.mockResolvedValue(report);
    make().open('x');
    await vi.waitUntil(() => tabs[0].node.textContent?.includes(report.title), PATIENT);
  });

  it('opens a page though the server could not mark it as read', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue(undefined);
    vi.spyOn(window, 'open').mockReturnValue(window);
    model.markRead.mockRejectedValue(new Error('read only'));
    make(false).open('x');
    expect(onSettled).toHaveBeenCalledWith('x');
    await vi.waitUntil(() => warn.mock.calls.length > 0, PATIENT);
  });

  it('says that no kernel died only where the list could be read', async () => {
    model.refreshCrashes.mockResolvedValueOnce([]);
    await make().openLast();
    expect(said()).toEqual(['No kernel has crashed yet.']);
    Notification.dismiss();
    model.refreshCrashes.mockResolvedValue(null);
    await make().openLast();
    expect(said()).toEqual(['Could not read the list of crashes.']);
  });

  it('opens the last death that is known where the list cannot be read', async () => {
    model.refreshCrashes.mockResolvedValue(null);
    model.crashes = crashes;
    read.mockReturnValue(new Promise(() => undefined));
    await make().openLast();
    expect(activateById).toHaveBeenCalledWith(reportTabId(crashes[0].id));
  });
});
