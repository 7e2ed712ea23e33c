import { showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { act } from 'react';
import type * as React from 'react';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { exportReport } from '../postmortem/exportDialog';
import type { ExportChoices, ExportPreview } from '../wire';

import { render } from './render';
import type { IRendered } from './render';
import { sample, trans } from './samples';

vi.mock('@jupyterlab/apputils', () => ({
  Dialog: { cancelButton: vi.fn(), okButton: vi.fn() },
  showDialog: vi.fn(),
  showErrorMessage: vi.fn()
}));

const preview = sample('preview');
const bundle = vi.fn(async () => new Blob(['zip']));
const read = vi.fn<(id: string, choices: ExportChoices) => Promise<ExportPreview>>();
const api = { preview: read, bundle };
const NONE = { without: [], replace: [] };

/** The user's answer, given once the form was used. */
function answer(accept: boolean, use?: (form: IRendered) => Promise<void>): void {
  vi.mocked(showDialog).mockImplementation(async options => {
    await use?.(render(options?.body as React.ReactElement));
    return { button: { accept } } as never;
  });
}

function body(): IRendered {
  return render(vi.mocked(showDialog).mock.lastCall?.[0]?.body as React.ReactElement);
}

async function type(form: IRendered, word: string): Promise<void> {
  const field = form.node.querySelector<HTMLInputElement>('input[type=text]')!;
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')!.set!;
  await act(async () => {
    set.call(field, word);
    field.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await form.click('.jp-TfGuard-Words button');
}

describe('exportReport', () => {
  beforeEach(() => {
    vi.clearAllMocks();
    read.mockResolvedValue(preview);
    URL.createObjectURL = vi.fn(() => 'blob:x');
    URL.revokeObjectURL = vi.fn();
  });

  it('shows each file with its size and text, and how much was removed', async () => {
    answer(false);
    await exportReport('x', api, trans);
    const { node, text } = body();
    expect(text).toContain('user and machine names): 3.');
    const files = [...node.querySelectorAll('summary')].map(file => file.textContent);
    expect(files).toEqual(['bundle.json · 793 KiB · 2 removed', 'report.json · 84 B · 1 removed']);
    const [first, second] = [...node.querySelectorAll('pre')];
    expect(first?.textContent).toMatch(/k3f9",… The exported file/);
    expect(second?.textContent).toBe(preview.files[1]?.text);
    expect(bundle).not.toHaveBeenCalled();
  });

  it('marks where something was removed, and what the user should check', async () => {
    answer(false);
    await exportReport('x', api, trans);
    const { node } = body();
    expect(node.querySelector('mark.jp-TfGuard-removed')?.textContent).toBe('[host]');
    const flagged = preview.flagged[0].text;
    expect(node.querySelector('mark.jp-TfGuard-suspicious')?.textContent).toBe(flagged);
    expect(node.querySelector('.jp-TfGuard-Flagged')?.textContent).toContain(
      `${flagged}long and random · 2 places`
    );
  });

  it('saves the zip once the user agrees', async () => {
    answer(true);
    const click = vi.spyOn(HTMLAnchorElement.prototype, 'click').mockReturnValue(undefined);
    await exportReport('20261121-x', api, trans);
    expect(bundle).toHaveBeenCalledWith('20261121-x', NONE);
    expect((click.mock.contexts[0] as HTMLAnchorElement).download).toBe('tfguard-20261121-x.zip');
    expect(URL.revokeObjectURL).toHaveBeenCalledWith('blob:x');
  });

  it('saves what the user chose', async () => {
    vi.spyOn(HTMLAnchorElement.prototype, 'click').mockReturnValue(undefined);
    answer(true, async form => {
      await form.click('fieldset label:nth-of-type(2) input');
      await form.click('fieldset label:nth-of-type(3) input');
      await form.click('fieldset label:nth-of-type(2) input');
      await form.click('.jp-TfGuard-Flagged button');
      await type(form, ' Miller ');
      await type(form, 'typo');
      await form.click('.jp-TfGuard-Words button:last-child');
    });
    await exportReport('x', api, trans);
    const chosen = { without: ['path'], replace: [preview.flagged[0].text, 'Miller'] };
    expect(read).toHaveBeenLastCalledWith('x', chosen);
    expect(bundle).toHaveBeenCalledWith('x', chosen);
  });

  it('shows the newest preview, whatever order the answers come in', async () => {
    const late: ((found: ExportPreview) => void)[] = [];
    let text = '';
    answer(false, async form => {
      read.mockImplementation(() => new Promise(resolve => late.push(resolve)));
      await form.click('fieldset input');
      await form.click('fieldset label:nth-of-type(2) input');
      await act(async () => late[1]?.({ ...preview, redacted_count: 22 }));
      await act(async () => late[0]?.({ ...preview, redacted_count: 11 }));
      text = form.text;
    });
    await exportReport('x', api, trans);
    expect(text).toContain('names): 22.');
    expect(text).not.toContain('Updating');
  });

  it('keeps the form when a preview fails', async () => {
    let text = '';
    answer(false, async form => {
      read.mockRejectedValue(new Error('The server is away.'));
      await form.click('fieldset input');
      text = form.text;
    });
    await exportReport('x', api, trans);
    expect(text).toContain('The server is away.');
    expect(text).toContain('bundle.json');
  });

  it('says why there is nothing to export', async () => {
    read.mockRejectedValue(new Error('It is gone.'));
    await exportReport('x', api, trans);
    expect(showErrorMessage).toHaveBeenCalledWith(expect.any(String), 'It is gone.');
  });
});
