import { beforeEach, describe, expect, it, vi } from 'vitest';

import { addCauseLine } from '../postmortem/causeLine';
import { readCrashes } from '../wire';
import type { CrashEntry } from '../wire';

import { sample, trans } from './samples';

function dialogNode(): HTMLElement {
  const node = document.createElement('dialog');
  node.innerHTML =
    '<div class="jp-Dialog-content"><span class="jp-Dialog-body">The kernel died.</span>' +
    '<div class="jp-Dialog-footer"><div class="jp-Dialog-footerButtons">' +
    '<button>Ok</button></div></div></div>';
  return node;
}

describe('addCauseLine', () => {
  let dialog: HTMLElement;
  let entry: CrashEntry;

  beforeEach(() => {
    dialog = dialogNode();
    entry = readCrashes(sample('crashes'))[0]!;
  });

  it('says that it looks for the cause, then says the cause', () => {
    const line = addCauseLine(dialog, { onShowWhy: vi.fn(), trans });
    expect(dialog.textContent).toContain('TF Guard is finding out why…');
    line?.fill(entry);
    expect(dialog.querySelector('.jp-TfGuard-Cause b')?.textContent).toBe(`Cause: ${entry.title}`);
    expect(dialog.textContent).toContain('In cell [12] · epoch 1, step 3. Certain.');
    expect(dialog.textContent).not.toContain('finding out');
  });

  it('offers the report before the button that closes', () => {
    const onShowWhy = vi.fn();
    const line = addCauseLine(dialog, { onShowWhy, trans });
    expect(dialog.querySelectorAll('button')).toHaveLength(1);
    line?.fill(entry);
    line?.fill(entry);
    const buttons = [...dialog.querySelectorAll('button')];
    expect(buttons.map(button => button.textContent)).toEqual(['Show why', 'Ok']);
    buttons[0]?.click();
    expect(onShowWhy).toHaveBeenCalledWith(entry);
  });

  it('admits that there is no report, until there is one', () => {
    const line = addCauseLine(dialog, { onShowWhy: vi.fn(), trans });
    line?.giveUp();
    expect(dialog.textContent).toContain('TF Guard has no report of this death yet.');
    line?.fill(entry);
    expect(dialog.textContent).not.toContain('has no report');
    expect(dialog.textContent).toContain(`Cause: ${entry.title}`);
  });

  it('keeps hostile titles text', () => {
    const title = '<img src=x onerror="alert(1)">';
    const line = addCauseLine(dialog, { onShowWhy: vi.fn(), trans });
    line?.fill({ ...entry, title, where: title });
    expect(dialog.querySelector('img')).toBeNull();
    expect(dialog.textContent).toContain(title);
  });

  it('leaves a dialog of another build alone', () => {
    const other = document.createElement('dialog');
    expect(addCauseLine(other, { onShowWhy: vi.fn(), trans })).toBeNull();
    expect(other.childNodes).toHaveLength(0);
  });
});
