import { Notification } from '@jupyterlab/apputils';
import { Signal } from '@lumino/signaling';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { warnNearLimit } from '../live/warnNearLimit';
import type { LimitAhead } from '../wire';

import { sample, trans } from './samples';

vi.mock('@jupyterlab/apputils', () => ({ Notification: { warning: vi.fn() } }));

describe('the warning before a limit', () => {
  const kernels: LimitAhead[] = sample('limits').kernels;
  let isEnabled: boolean;
  let limitsAhead: Signal<object, readonly LimitAhead[]>;

  beforeEach(() => {
    vi.mocked(Notification.warning).mockClear();
    isEnabled = true;
    limitsAhead = new Signal({});
    const model = { limitsAhead } as never;
    warnNearLimit({ model, isEnabled: () => isEnabled, openPanel: vi.fn(), trans });
  });

  function messages(): string[] {
    return vi.mocked(Notification.warning).mock.calls.map(([message]) => message);
  }

  it('comes once for each run, of whatever notebook, and names it', () => {
    limitsAhead.emit(kernels);
    limitsAhead.emit(kernels);
    expect(messages()).toEqual([
      'train.ipynb: memory will soon reach the container limit of 8.00 GiB.',
      'pandas.ipynb: memory is rising and is near the container limit of 8.00 GiB.'
    ]);
    limitsAhead.emit([{ ...kernels[0], run: 'the next' }]);
    expect(messages()).toHaveLength(3);
  });

  it('closes by itself', () => {
    limitsAhead.emit(kernels);
    const [, options] = vi.mocked(Notification.warning).mock.lastCall!;
    expect(options?.autoClose).toBeGreaterThan(0);
  });

  it('does not come where it is switched off', () => {
    isEnabled = false;
    limitsAhead.emit(kernels);
    expect(messages()).toEqual([]);
  });
});
