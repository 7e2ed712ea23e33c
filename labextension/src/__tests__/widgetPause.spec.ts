import { describe, expect, it, vi } from 'vitest';

import { button, draw, el, inNotebook, isAsking, settled, told } from './widgetRig';

inNotebook();

describe('its pause', () => {
  it('is asked of the server, and answered there', async () => {
    const fetched = vi.fn(async (_url: string, { body }: RequestInit) =>
      (body as string).includes('here')
        ? new Response('{"status": "error", "message": "no"}', { status: 409 })
        : new Response('{"status": "ok", "hertz": 0}')
    );
    vi.stubGlobal('fetch', fetched);
    document.body.dataset.baseUrl = '/user/ann/';
    const model = draw();
    button().click();
    expect(isAsking()).toBe(true);
    await settled();
    expect(fetched).toHaveBeenCalledWith(
      `/user/ann/tfguard/api/kernels/${told.state.kernel_id}/control`,
      expect.objectContaining({ method: 'POST', body: '{"request":"rate","hertz":0}' })
    );
    expect(button().textContent).toBe('Go on');
    expect(isAsking()).toBe(false);
    expect(el.textContent).toContain('Paused. Values of');
    expect(model.sent).toHaveLength(1);
  });

  it('is a message of its own where nobody else can be asked, and says that it waits', async () => {
    const model = draw();
    button().click();
    await settled();
    expect(model.sent.at(-1)).toEqual({ type: 'control', request: 'rate', hertz: 0 });
    expect(el.textContent).toContain('The kernel answers once no cell runs.');
    model.tell({ type: 'answer', status: 'ok', hertz: 0 });
    expect(button().textContent).toBe('Go on');
    button().click();
    await settled();
    expect(model.sent.at(-1).hertz).toBe(4);
  });

  it('says nothing of the cell until it goes on: the kernel does not tell when it ends', async () => {
    const model = draw();
    const state = el.querySelector('.jp-TfGuard-State')!;
    model.tell({ type: 'rate', hertz: 0 });
    expect(state.textContent).toBe('● guarding');
    model.tell({ type: 'rate', hertz: 4 });
    model.tell({ type: 'state', state: { ...told.state, busy: false } });
    expect(state.textContent).toBe('● guarding, idle');
    model.tell({ type: 'ended' });
    expect(state.textContent).not.toContain('idle');
  });

  it('says why it was refused', async () => {
    const model = draw();
    button().click();
    await settled();
    model.tell({ type: 'answer', status: 'error', message: 'No.' });
    expect(el.textContent).toContain('No.');
    expect(isAsking()).toBe(false);
  });

  it('keeps the focus while it waits, and asks once', async () => {
    const model = draw();
    await settled();
    const before = model.sent.length;
    button().focus();
    button().click();
    expect(button().disabled).toBe(false);
    expect(document.activeElement).toBe(button());
    button().click();
    await settled();
    button().click();
    await settled();
    expect(model.sent).toHaveLength(before + 1);
    model.tell({ type: 'answer', status: 'ok', hertz: 0 });
    expect(document.activeElement).toBe(button());
    button().click();
    await settled();
    expect(model.sent).toHaveLength(before + 2);
  });
});
