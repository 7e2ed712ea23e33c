import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { askServer, askSubshell } from '../widget/control';
import type { IComm, IKernel } from '../widget/host';
import { jupyterServer } from '../widget/server';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  document.body.removeAttribute('data-base-url');
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe('a comm on a subshell', () => {
  function kernel(comm: Partial<IComm>): IKernel {
    return {
      supportsSubshells: true,
      createComm: () => ({ open: vi.fn(), send: vi.fn(), close: vi.fn(), ...comm }) as IComm
    };
  }

  it('is opened only once it has its subshell', async () => {
    const steps: string[] = [];
    const made = kernel({
      subshellStarted: Promise.resolve().then(() => void steps.push('subshell')),
      open: () => steps.push('open'),
      close: () => steps.push('close')
    });
    const create = made.createComm;
    made.createComm = target => {
      const comm = create(target);
      comm.send = () => comm.onMsg({ content: { data: { status: 'ok', hertz: 0 } } });
      return comm;
    };
    const answer = await askSubshell(made, { request: 'rate', hertz: 0 });
    expect(answer).toEqual({ isDone: true, hertz: 0, state: null });
    expect(steps).toEqual(['subshell', 'open', 'close']);
  });

  it('is no way where there are no subshells, or no answer', async () => {
    const request = { request: 'rate', hertz: 0 } as const;
    expect(await askSubshell(undefined, request)).toBeNull();
    expect(await askSubshell({ ...kernel({}), supportsSubshells: false }, request)).toBeNull();
    expect(await askSubshell(kernel({}), request)).toBeNull();
    const silent = askSubshell(kernel({ subshellStarted: Promise.resolve() }), request);
    await vi.advanceTimersByTimeAsync(6_000);
    expect(await silent).toBeNull();
  });
});

describe('the server of the page', () => {
  it('is found in every kind of Jupyter page', () => {
    expect(jupyterServer()).toBeNull();
    document.body.dataset.baseUrl = '/base';
    expect(jupyterServer()?.baseUrl).toBe('/base/');
    // VS Code names the folder of third-party widgets so.
    document.body.dataset.baseUrl = 'https://file.vscode-cdn.net/jupyter/';
    expect(jupyterServer()).toBeNull();
    const lab = document.createElement('script');
    lab.id = 'jupyter-config-data';
    lab.type = 'application/json';
    lab.textContent = '{"baseUrl": "/lab/", "token": "t0"}';
    document.body.append(lab);
    expect(jupyterServer()).toEqual({
      baseUrl: '/lab/',
      headers: { Authorization: 'token t0' }
    });
    lab.remove();
  });

  it('is passed over where it cannot be reached, and believed where it says no', async () => {
    document.body.dataset.baseUrl = '/';
    vi.stubGlobal('fetch', async () => Promise.reject(new TypeError('no net')));
    expect(await askServer('k', { request: 'rate', hertz: 1 })).toBeNull();
    expect(await askServer(null, { request: 'rate', hertz: 1 })).toBeNull();
    const silent = new Response('{"message": "The kernel gave no answer."}', { status: 409 });
    vi.stubGlobal('fetch', async () => silent);
    expect(await askServer('k', { request: 'rate', hertz: 1 })).toEqual({
      isDone: false,
      reason: 'The kernel gave no answer.'
    });
  });
});
