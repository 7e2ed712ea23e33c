import './browserGaps';

import { Dialog } from '@jupyterlab/apputils';
import { Signal } from '@lumino/signaling';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { showOptions } from '../live/optionsDialog';
import { showStacks } from '../live/stacksDialog';
import { exportReport } from '../postmortem/exportDialog';
import { watchRestartDialogs } from '../postmortem/restartDialog';
import type { ExportPreview } from '../wire';

import { crashEntries, sample, trans } from './samples';
import { PATIENT } from './patience';

const copy = { label: 'Copy', done: 'Copied', failed: 'Copy failed', write: vi.fn() };

/** The dialogs are JupyterLab's own here. */
describe('Enter in a dialog', () => {
  const bundle = vi.fn(async () => new Blob(['zip']));

  beforeEach(() => {
    vi.clearAllMocks();
    copy.write.mockResolvedValue(undefined);
    URL.createObjectURL = vi.fn(() => 'blob:x');
    URL.revokeObjectURL = vi.fn();
    vi.spyOn(HTMLAnchorElement.prototype, 'click').mockReturnValue(undefined);
  });

  afterEach(close);

  function close(): void {
    Dialog.tracker.forEach(dialog => dialog.reject());
  }

  function isOpen(): boolean {
    return document.querySelector('.jp-Dialog') !== null;
  }

  async function find<T extends HTMLElement>(selector: string): Promise<T> {
    return vi.waitUntil(() => document.querySelector<T>(`.jp-Dialog ${selector}`), PATIENT);
  }

  /** As a browser does: a button that has the focus is clicked unless someone prevents it. */
  function press(target: HTMLElement, options: KeyboardEventInit = {}): void {
    target.tabIndex = 0; // jsdom gives a summary no focus by itself
    target.focus();
    expect(document.activeElement).toBe(target);
    const init = { key: 'Enter', bubbles: true, cancelable: true, ...options };
    if (target.dispatchEvent(new KeyboardEvent('keydown', init))) {
      target.click();
    }
  }

  function exported(): Promise<void> {
    const preview = async (): Promise<ExportPreview> => sample('preview');
    return exportReport('x', { preview, bundle }, trans);
  }

  it('opens a file of the export, and saves nothing', async () => {
    void exported();
    const summary = await find('summary');
    press(summary);
    expect(summary.closest('details')?.open).toBe(true);
    press(await find('pre'));
    expect(isOpen()).toBe(true);
    expect(bundle).not.toHaveBeenCalled();
  });

  it('adds a word to replace, and saves nothing', async () => {
    void exported();
    const field = await find<HTMLInputElement>('.jp-TfGuard-Words input');
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')!.set!;
    set.call(field, 'Miller');
    field.dispatchEvent(new Event('input', { bubbles: true }));
    await vi.waitUntil(() => document.querySelector('.jp-TfGuard-Words button:enabled'), PATIENT);
    press(field);
    expect((await find('[aria-label="Do not replace Miller"]')).textContent).toContain('Miller');
    expect(isOpen()).toBe(true);
    expect(bundle).not.toHaveBeenCalled();
  });

  it('saves an export only where Download has the focus', async () => {
    let done = exported();
    await find('summary');
    press(await find('.jp-mod-reject'));
    await done;
    expect(bundle).not.toHaveBeenCalled();
    done = exported();
    await find('summary');
    press(await find('.jp-mod-accept'));
    await done;
    expect(bundle).toHaveBeenCalledTimes(1);
  });

  it('has the focus on the button that does nothing', async () => {
    void exported();
    const cancel = await find('.jp-mod-reject');
    await vi.waitUntil(() => document.activeElement === cancel, PATIENT);
    close();
    void showStacks('k', { stacks: async () => ['a line'] }, copy, trans);
    const leave = await find('.jp-mod-reject');
    await vi.waitUntil(() => document.activeElement === leave, PATIENT);
  });

  it('presses a button of the options once, however long it is held', async () => {
    void showOptions({ options: async () => sample('options').options }, copy, trans);
    const button = await find<HTMLButtonElement>('.jp-TfGuard-Option button');
    const onClick = vi.fn();
    button.addEventListener('click', onClick);
    press(button);
    press(button, { repeat: true });
    expect(onClick).toHaveBeenCalledTimes(1);
    press(await find('.jp-TfGuard-CodeBlock button'));
    await vi.waitUntil(() => copy.write.mock.calls.length > 0, PATIENT);
    expect(copy.write).toHaveBeenCalledTimes(1);
    expect(isOpen()).toBe(true);
  });

  it('shows why a kernel restarts', async () => {
    const entry = crashEntries()[0];
    const openReport = vi.fn();
    const session = { path: 'a.ipynb', name: 'a.ipynb', kernelId: 'k', status: 'autorestarting' };
    watchRestartDialogs({
      dialogs: Dialog.tracker,
      isGuarding: () => true,
      notice: { found: new Signal({} as never), take: () => entry },
      openReport,
      readCrashes: async () => undefined,
      sessions: () => [session],
      trans
    });
    const dialog = new Dialog({ body: 'The kernel for a.ipynb appears to have died.' });
    const answer = dialog.launch();
    press(await find('.jp-TfGuard-ShowWhy'));
    await answer;
    expect(openReport.mock.calls).toEqual([[entry.id]]);
  });

  it('is left to the parts of others', async () => {
    const first = document.createElement('button');
    const dialog = new Dialog({ title: 'Rename', buttons: [Dialog.okButton({ label: 'Ok' })] });
    const onClick = vi.fn();
    first.addEventListener('click', onClick);
    dialog.node.querySelector('.jp-Dialog-body')?.append(first);
    const answer = dialog.launch();
    const ok = await find('.jp-mod-accept');
    press(first);
    expect(onClick).not.toHaveBeenCalled();
    press(ok);
    expect((await answer).button.accept).toBe(true);
  });
});

describe('showStacks', () => {
  it('reports a clipboard error', async () => {
    copy.write.mockRejectedValue(new Error('No permission.'));
    const done = showStacks('k', { stacks: async () => ['a line'] }, copy, trans);
    const button = await vi.waitUntil(
      () => document.querySelector<HTMLElement>('.jp-Dialog .jp-mod-accept'),
      PATIENT
    );
    button.click();
    await vi.waitUntil(
      () => document.querySelector('.jp-Dialog')?.textContent?.includes('No permission.'),
      PATIENT
    );
    Dialog.tracker.forEach(dialog => dialog.reject());
    await done;
  });
});
