import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import {
  button,
  FakeModel,
  draw,
  el,
  inNotebook,
  isAsking,
  leave,
  settled,
  told
} from './widgetRig';
import type { Json } from './widgetRig';

inNotebook();

describe('its word that it is looked at', () => {
  const HERE = { request: 'here', panel: 'p1', view: expect.any(String) };
  let said: Json[];
  let status: number;
  let model: FakeModel;

  const show = (state: 'visible' | 'hidden'): void => {
    vi.spyOn(document, 'visibilityState', 'get').mockReturnValue(state);
    document.dispatchEvent(new Event('visibilitychange'));
  };
  /** The kernel feeds it for so long while a cell runs. */
  const feed = async (seconds: number, busy = true): Promise<void> => {
    for (let second = 0; second < seconds; second++) {
      model.tell({ type: 'state', state: { ...told.state, busy } });
      await vi.advanceTimersByTimeAsync(1_000);
    }
  };

  beforeEach(() => {
    said = [];
    status = 200;
    document.body.dataset.baseUrl = '/';
    vi.stubGlobal('fetch', async (_url: string, { body }: RequestInit) => {
      said.push(JSON.parse(body as string));
      return new Response(JSON.stringify({ status: 'ok', state: told.state }), { status });
    });
    model = new FakeModel({ ...told, panel: 'p1' });
  });

  afterEach(() => {
    vi.restoreAllMocks();
  });

  it('comes at once, and now and then while it is fed', async () => {
    draw(model);
    expect(said).toEqual([HERE]);
    await feed(46);
    expect(said).toHaveLength(4);
    expect(new Set(said.map(one => one.view)).size).toBe(1);
    expect(said[0].view).toBe(model.sent[0].view);
    expect(model.sent).toHaveLength(1); // nothing that waits behind the cell
  });

  it('does not come while no cell runs, and not after the end', async () => {
    draw(model);
    await feed(60, false);
    expect(said).toHaveLength(1);
    leave();
    show('visible');
    expect(said).toHaveLength(1);
  });

  it('does not come from a hidden page, and at once when it is shown', async () => {
    draw(model);
    await settled();
    show('hidden');
    await feed(60);
    await vi.advanceTimersByTimeAsync(60_000); // fed no more
    expect(el.textContent).toContain('No word from the kernel');
    expect(said).toHaveLength(1);
    show('visible');
    expect(said).toHaveLength(2);
    await settled();
  });

  it('is not repeated where nobody ever answered', async () => {
    status = 404;
    draw(model);
    await feed(300);
    expect(said).toHaveLength(3);
  });

  it('goes on after a failure where somebody did', async () => {
    draw(model);
    await settled();
    status = 502;
    await feed(100);
    expect(said.length).toBeGreaterThan(5);
  });

  it('does not answer a request of the button', async () => {
    draw(model);
    status = 404;
    button().click();
    await settled();
    expect(isAsking()).toBe(true);
    status = 200;
    await feed(20);
    expect(isAsking()).toBe(true);
    expect(el.textContent).toContain('The kernel answers once no cell runs.');
  });
});
