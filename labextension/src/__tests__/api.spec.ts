// @vitest-environment node
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { ApiError, GuardApi } from '../api';

import { sample } from './samples';

const server = vi.hoisted(() => ({
  makeRequest: vi.fn<(url: string, init: RequestInit) => Promise<Response>>()
}));

vi.mock('@jupyterlab/services', () => ({ ServerConnection: server }));

const api = new GuardApi({ baseUrl: 'http://127.0.0.1:8888/user/ann/' } as never);

function answer(body: unknown, status = 200): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  server.makeRequest.mockResolvedValue(new Response(text, { status, statusText: 'So so' }));
}

async function failureOf(promise: Promise<unknown>): Promise<ApiError> {
  const error = await promise.then(
    () => new Error('It did not fail.'),
    (reason: unknown) => reason
  );
  if (!(error instanceof ApiError)) {
    throw error;
  }
  return error;
}

describe('GuardApi', () => {
  beforeEach(() => {
    server.makeRequest.mockReset();
  });

  it('asks below the base URL', async () => {
    answer(sample('crashes'));
    expect(await api.crashes()).toHaveLength(6);
    expect(server.makeRequest.mock.calls[0]?.[0]).toBe(
      'http://127.0.0.1:8888/user/ann/tfguard/api/crashes'
    );
  });

  it('keeps an id within its place in the URL', async () => {
    answer(sample('report'));
    await api.report('../../x?y');
    expect(server.makeRequest.mock.calls[0]?.[0]).toContain('/crashes/..%2F..%2Fx%3Fy');
  });

  it('fetches Markdown as text, and marks as read by POST', async () => {
    answer('# Why');
    expect(await api.markdown('a')).toBe('# Why');
    server.makeRequest.mockResolvedValue(new Response(null, { status: 204 }));
    await api.markRead('a');
    expect(server.makeRequest.mock.calls[1]?.[1]).toEqual({ method: 'POST' });
  });

  it('sends the choices of an export in the body, not in the address', async () => {
    answer(sample('preview'));
    const choices = { without: ['path'] as const, replace: ['Miller'] };
    expect((await api.preview('a', choices)).marks).toContain('[redacted]');
    answer('zip');
    await api.bundle('a', choices);
    expect(server.makeRequest).toHaveBeenCalledTimes(2);
    for (const [url, init] of server.makeRequest.mock.calls) {
      expect(url).not.toContain('Miller');
      expect(init).toEqual({ method: 'POST', body: JSON.stringify(choices) });
    }
  });

  it('forgets by DELETE', async () => {
    server.makeRequest.mockResolvedValue(new Response(null, { status: 204 }));
    await api.forget('a/b');
    const [url, init] = server.makeRequest.mock.calls[0];
    expect(url).toContain('/crashes/a%2Fb');
    expect(init).toEqual({ method: 'DELETE' });
  });

  it('reports what is absent, with the message of the server', async () => {
    answer({ message: 'no report a' }, 404);
    const error = await failureOf(api.report('a'));
    expect([error.failure, error.message]).toEqual(['absent', 'no report a']);
  });

  it('reports a refusal, also one without a message', async () => {
    answer('<html>', 500);
    const error = await failureOf(api.status());
    expect([error.failure, error.message]).toEqual(['refused', '500 So so']);
  });

  it.each([401, 403])('reports denied access by %s', async status => {
    answer({ message: 'Forbidden' }, status);
    const error = await failureOf(api.status());
    expect([error.failure, error.message]).toEqual(['locked', 'Forbidden']);
  });

  it('reports a server that does not respond', async () => {
    server.makeRequest.mockRejectedValue(new TypeError('Failed to fetch'));
    expect((await failureOf(api.status())).failure).toBe('away');
  });

  it('takes a page of a proxy for a refusal, not for data', async () => {
    answer('<html>hello</html>');
    expect((await failureOf(api.crashes())).failure).toBe('refused');
  });
});
