import { Notification } from '@jupyterlab/apputils';
import { Signal } from '@lumino/signaling';
import { expect, it, vi } from 'vitest';

import { warnNearLimit } from '../live/warnNearLimit';
import { readStatus } from '../wire';

import { sample, trans } from './samples';

vi.mock('@jupyterlab/services', () => ({ ServerConnection: {} }));
vi.mock('@jupyterlab/apputils', () => ({
  Notification: { warning: vi.fn(() => 'id'), dismiss: vi.fn() }
}));

it('shows a notification that closes by itself and holds no number that changes', () => {
  const kernel = readStatus(sample('status')).kernels[0];
  const forecast = { seconds_left: 40, bytes_per_second: 2 ** 20, low: 1, high: 2 ** 21 };
  const changed = new Signal<object, void>({});
  const model = {
    brief: { ...kernel, execution_state: 'busy', host: { ...kernel.host, forecast } },
    server: 'ok',
    target: { path: 'train.ipynb', kernelId: kernel.kernel_id },
    changed,
    moved: new Signal<object, void>({})
  };
  warnNearLimit({ model: model as never, openPanel: vi.fn(), trans });
  changed.emit();
  const [message, options] = vi.mocked(Notification.warning).mock.lastCall!;
  expect(message).toBe('train.ipynb: memory will soon reach the container limit of 8.0 GiB.');
  expect(options?.autoClose).toBeGreaterThan(0);
});
