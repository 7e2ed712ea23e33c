import { describe, expect, it, vi } from 'vitest';

import type { IChartData } from '../chart/timeChart';
import { PanelModel } from '../widget/model';
import {
  charts,
  draw,
  el,
  FakeModel,
  inNotebook,
  leave,
  NOW,
  settled,
  widgetSample
} from './widgetRig';

inNotebook();

describe('the panel in a notebook', () => {
  it('shows memory with its limit, training, tensors and guard', () => {
    draw();
    const text = el.textContent;
    for (const part of [
      'TF Guard · train.ipynb',
      'guarding, running a cell',
      '6.10 of 8.00 GiB',
      'container limit · 1.90 GiB free',
      'this kernel 5.90 GiB · rest 205 MiB',
      'epoch 3 of 10 · step 219 of 313',
      '14.9 of 38.0 GiB',
      'memory growth on'
    ]) {
      expect(text).toContain(part);
    }
    const chart = charts.drawn[0] as IChartData;
    expect(chart.limit).toEqual({ value: 8 * 2 ** 30, label: 'container limit 8.00 GiB' });
    expect(chart.description).toContain('6.10 GiB of 8.00 GiB, container limit');
  });

  it('moves with each message, and keeps the line', () => {
    const model = draw();
    const host = {
      ...widgetSample.state.host,
      used_bytes: 7 * 2 ** 30,
      time: widgetSample.state.time + 1
    };
    model.receive({
      type: 'state',
      state: { ...widgetSample.state, host, busy: false, training: null }
    });
    expect(el.textContent).toContain('7.00 of 8.00 GiB');
    expect(el.textContent).toContain('guarding, idle');
    expect(el.querySelector<HTMLElement>('.jp-TfGuard-Training')?.hidden).toBe(true);
    expect(model.sent).toEqual([{ type: 'opened' }]);
  });

  it('shows a training loop without a bar', () => {
    const model = draw();
    const training = {
      ...widgetSample.state.training,
      kind: 'loop',
      model_name: null,
      epoch: null,
      epochs: null,
      steps: null,
      step: 974,
      logs: {}
    };
    model.receive({ type: 'state', state: { ...widgetSample.state, training } });
    const shown = el.querySelector<HTMLElement>('.jp-TfGuard-Training')!;
    expect(shown.textContent).toContain('Training loop');
    expect(shown.textContent).toContain('step 974');
    expect(shown.querySelector('[role=progressbar]')).toBeNull();
  });

  it('shows when memory reaches the limit, as the panel does, and draws the forecast', () => {
    const model = draw();
    const notice = el.querySelector<HTMLElement>('.jp-TfGuard-LimitNotice')!;
    expect(notice.hidden).toBe(true);
    expect((charts.drawn.at(-1) as IChartData).forecast).toBeNull();
    const forecast = { seconds_left: 214.6, bytes_per_second: 12.04 * 2 ** 20, low: 1, high: 2e9 };
    const host = { ...widgetSample.state.host, forecast };
    model.receive({ type: 'state', state: { ...widgetSample.state, host } });
    expect(notice.hidden).toBe(false);
    expect(notice.textContent).toBe(
      '▲Limit in about 4 minutes at 12 MiB/s. At the limit, the system kills the kernel.'
    );
    const { forecast: line, range } = charts.drawn.at(-1) as IChartData;
    const end = host.time;
    expect(line?.from).toEqual([end, host.used_bytes]);
    expect(line?.to[0]).toBeGreaterThan(end);
    expect(line?.to[0]).toBeLessThanOrEqual(range[1]);
    expect(line?.to[1]).toBeGreaterThan(host.used_bytes);
    model.receive({ type: 'state', state: widgetSample.state });
    expect(notice.hidden).toBe(true);
  });

  it('shows the threshold of the stop, and warns near it', () => {
    const model = draw();
    const row = el.querySelector<HTMLElement>('.jp-TfGuard-Stop')!;
    expect(row.textContent).toContain('✓ Stops a cell when less than 184 MiB is left');
    expect(row.textContent).toContain('Not active for NumPy');
    const host = { ...widgetSample.state.host, used_bytes: 8 * 2 ** 30 - 2 ** 29 };
    model.receive({ type: 'state', state: { ...widgetSample.state, host } });
    expect(row.textContent).toContain('▲ Memory is nearly full.');
    expect(el.textContent).not.toContain('90 %');
    // A saved notebook may have been written by an older version.
    const guard = { ...widgetSample.state.guard, stop: undefined };
    model.receive({ type: 'state', state: { ...widgetSample.state, guard } });
    expect(row.hidden).toBe(true);
  });

  it('draws hostile texts as texts', () => {
    const evil = '<img src=x onerror=alert(1)>';
    const model = draw();
    const guard = { ...widgetSample.state.guard, problems: [evil], text: evil };
    const training = { ...widgetSample.state.training, model_name: evil, logs: { [evil]: evil } };
    model.receive({
      type: 'state',
      state: { ...widgetSample.state, notebook: evil, guard, training }
    });
    expect(el.querySelector('img')).toBeNull();
    expect(el.textContent).toContain(evil);
  });

  it('takes the colours of the page it is on', async () => {
    draw();
    const root = el.firstElementChild!;
    expect(root.classList.contains('jp-mod-foreign')).toBe(true);
    document.body.dataset.jpThemeLight = 'true';
    await settled();
    expect(root.classList.contains('jp-mod-foreign')).toBe(false);
    delete document.body.dataset.jpThemeLight;
    document.documentElement.setAttribute('theme', 'dark');
    await settled();
    expect(root.classList.contains('jp-mod-foreign')).toBe(true);
    expect(root.classList.contains('jp-mod-dark')).toBe(true);
    document.documentElement.removeAttribute('theme');
  });

  it('leaves nothing behind', () => {
    const model = draw();
    leave();
    expect(el.childElementCount).toBe(0);
    expect(model.listeners.size).toBe(0);
    expect(charts.disposed).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
    expect(model.sent.map(message => message.type)).toEqual(['opened']);
  });

  it('says what it cannot read, instead of nothing', () => {
    vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    draw(new FakeModel({ state: { time: 'now' }, history: [] }));
    expect(el.textContent).toContain('have different versions');
    leave();
    draw().receive({ type: 'something new' });
    expect(el.textContent).toContain('6.10 of 8.00 GiB');
  });

  it('says that the kernel is silent while a cell runs', async () => {
    const model = draw();
    await vi.advanceTimersByTimeAsync(8_000);
    expect(el.textContent).toContain('No message from the kernel for 8 s');
    model.receive({ type: 'state', state: widgetSample.state });
    expect(el.textContent).not.toContain('No message');
  });

  it('requests the history again when its page is shown: messages may get lost', () => {
    const model = draw();
    const seen = vi.spyOn(document, 'visibilityState', 'get').mockReturnValue('hidden');
    document.dispatchEvent(new Event('visibilitychange'));
    expect(model.sent).toHaveLength(1);
    seen.mockReturnValue('visible');
    document.dispatchEvent(new Event('visibilitychange'));
    expect(model.sent).toEqual([model.sent[0], model.sent[0]]);
    leave();
    document.dispatchEvent(new Event('visibilitychange'));
    expect(model.sent).toHaveLength(2);
  });

  it('says when the guard was unloaded', () => {
    draw().receive({ type: 'ended' });
    expect(el.textContent).toContain('The guard was unloaded at');
  });
});

describe('PanelModel', () => {
  it('is old where a notebook was saved with it', () => {
    const model = new PanelModel(widgetSample.state, widgetSample.history);
    expect(model.silentSeconds(NOW + 60_000)).toBe(60);
    model.take({ type: 'ended' }, NOW + 60_000);
    expect(model.silentSeconds(NOW + 60_000)).toBe(0);
  });
});
