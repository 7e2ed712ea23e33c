import * as React from 'react';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { Options } from '../live/Options';
import type { Option } from '../wire';

import { render } from './render';
import type { IRendered } from './render';
import { sample, trans } from './samples';

describe('Options', () => {
  let options: Option[];
  const copy = { label: 'Copy', done: 'Copied', failed: 'Copy failed', write: vi.fn() };

  beforeEach(() => {
    options = sample('options').options;
  });

  const draw = (): IRendered => render(<Options options={options} copy={copy} trans={trans} />);

  const row = (drawn: IRendered, name: string): string =>
    [...drawn.node.querySelectorAll('li')].find(
      item => item.querySelector('code')?.textContent === name
    )?.textContent ?? '';

  it('shows each value and where it comes from', () => {
    const drawn = draw();
    expect(row(drawn, 'enabled')).toContain('enabled truedefault');
    expect(row(drawn, 'gpu_memory_limit_mib')).toContain('none');
    expect(row(drawn, 'stop')).toContain('stop softdefault');
    expect(row(drawn, 'hang_seconds')).toContain(
      '120from /home/ann/.jupyter/jupyter_tfguard_config.json; the default is 300'
    );
    expect(row(drawn, 'set_memory_growth')).toContain('from TF_FORCE_GPU_ALLOW_GROWTH');
    expect(row(drawn, 'busy_hertz')).toContain(
      'from the configuration or command line of the Jupyter server'
    );
  });

  it('shows notes: a variable that overrides, a file that changed', () => {
    const drawn = draw();
    expect(row(drawn, 'set_memory_growth')).toContain('▲ TF_FORCE_GPU_ALLOW_GROWTH=false is set');
    expect(row(drawn, 'hang_seconds')).toContain('says 60.0 by now');
    expect(row(drawn, 'enabled')).not.toContain('▲');
  });

  it('shows how to change one when asked, to be copied', async () => {
    const drawn = draw();
    expect(drawn.node.querySelector('pre')).toBeNull();
    const button = '[aria-label="How to change busy_hertz"]';
    await drawn.click(button);
    expect(drawn.node.querySelector(button)?.getAttribute('aria-expanded')).toBe('true');
    expect(drawn.node.querySelector('pre')?.textContent).toBe('c.TfGuard.busy_hertz = 5.0');
    expect(row(drawn, 'busy_hertz')).toContain('Then restart Jupyter and its kernels.');
    await drawn.click('.jp-TfGuard-CodeBlock button');
    expect(copy.write).toHaveBeenCalledWith('c.TfGuard.busy_hertz = 5.0');
    await drawn.click(button);
    expect(drawn.node.querySelector('pre')).toBeNull();
  });

  it('prints bytes with their unit', () => {
    options = [{ ...options[0], name: 'report_limit_bytes', value: 67108864 }];
    expect(draw().text).toContain('64 MiB');
  });
});
