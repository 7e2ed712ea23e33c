import { showDialog, showErrorMessage } from '@jupyterlab/apputils';
import type * as React from 'react';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { exportReport } from '../postmortem/exportDialog';

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
const api = { preview: async () => preview, bundle };

function answer(accept: boolean): void {
  vi.mocked(showDialog).mockResolvedValue({ button: { accept } } as never);
}

function body(): IRendered {
  return render(vi.mocked(showDialog).mock.lastCall?.[0]?.body as React.ReactElement);
}

describe('exportReport', () => {
  beforeEach(() => {
    vi.clearAllMocks();
    URL.createObjectURL = vi.fn(() => 'blob:x');
    URL.revokeObjectURL = vi.fn();
  });

  it('shows each file with its size and text, and how much was removed', async () => {
    answer(false);
    await exportReport('x', api, trans);
    const { node, text } = body();
    expect(text).toContain('user and machine names): 3.');
    const files = [...node.querySelectorAll('summary')].map(file => file.textContent);
    expect(files).toEqual(['bundle.json · 793 KiB', 'report.json · 31 B']);
    const [first, second] = [...node.querySelectorAll('pre')];
    expect(first?.textContent).toMatch(/k3f9",… The exported file/);
    expect(second?.textContent).toBe(preview.files[1]?.text);
    expect(bundle).not.toHaveBeenCalled();
  });

  it('saves the zip once the user agrees', async () => {
    answer(true);
    const click = vi.spyOn(HTMLAnchorElement.prototype, 'click').mockReturnValue(undefined);
    await exportReport('20261121-x', api, trans);
    expect(bundle).toHaveBeenCalledWith('20261121-x');
    expect((click.mock.contexts[0] as HTMLAnchorElement).download).toBe('tfguard-20261121-x.zip');
    expect(URL.revokeObjectURL).toHaveBeenCalledWith('blob:x');
  });

  it('says why there is nothing to export', async () => {
    const failing = { preview: () => Promise.reject(new Error('It is gone.')), bundle };
    await exportReport('x', failing, trans);
    expect(showErrorMessage).toHaveBeenCalledWith(expect.any(String), 'It is gone.');
  });
});
