import { describe, expect, it } from 'vitest';

import type { Growth } from '../wire';

import { card, GIB, held, instance, other, own } from './cards';
import { draw, eight, folded, NOW, rows, titles } from './gpuRig';

describe('Eight cards', () => {
  const mine = held(5, 40, [own(39)]);

  it('stand in a line each, but for those that this kernel works on', () => {
    const busy = held(3, 71, [other('train_b.ipynb', 70.4)]);
    const drawn = draw(eight({ 3: busy, 5: mine }));
    expect(titles(drawn)).toEqual([
      'GPU 5 · H100 80GB HBM3, 80 GiB',
      'Other GPUs · 80 GiB each, H100 80GB HBM3'
    ]);
    expect(folded(drawn)).toHaveLength(7);
    expect(folded(drawn)[3]).toBe('GPU 3 · train_b.ipynb71.0 GiB');
    expect(folded(drawn)[0]).toBe('GPU 00 B');
  });

  it('name each kind and size where they differ', () => {
    const drawn = draw(eight({ 3: card({ nvml_index: 3, memory_total_bytes: 40 * GIB }) }));
    expect(titles(drawn)).toEqual(['GPUs']);
    expect(folded(drawn)[0]).toBe('GPU 00 B of 80.0 GiB');
    expect(folded(drawn)[3]).toBe('GPU 30 B of 40.0 GiB');
    expect(drawn.node.querySelectorAll('details')[3]?.textContent).toContain('HBM3, 40 GiB');
  });

  it('open each to the whole card', () => {
    const drawn = draw(eight({ 3: held(3, 71, [other('train_b.ipynb', 70.4)]) }));
    const details = drawn.node.querySelectorAll('details')[3];
    expect(titles(drawn)).toEqual(['GPUs · 80 GiB each, H100 80GB HBM3']);
    expect(details?.open).toBe(false);
    expect(details?.textContent).toContain('34 °C');
    expect(details?.querySelector('.jp-TfGuard-bar')).not.toBeNull();
  });

  it('bring a card with an alarm to the front', () => {
    const text = 'Xid 48: double bit error.';
    const alarms = [{ severity: 'error' as const, text, fix: 'Restart.', since: NOW - 60 }];
    const drawn = draw(eight({ 6: card({ nvml_index: 6, alarms }) }));
    expect(titles(drawn)[0]).toContain('GPU 6');
    const notice = drawn.node.querySelector('.jp-mod-error');
    expect(notice?.textContent).toMatch(
      /✕Xid 48: double bit error\.Restart\.since today \d\d:\d\d/
    );
  });

  it('stay calm when TensorFlow made a context on each and works on one', () => {
    const contexts = Object.fromEntries(
      [0, 1, 2, 3, 4, 6, 7].map(index => [index, held(index, 1, [own(0.4)])])
    );
    const drawn = draw(eight({ ...contexts, 5: mine }));
    expect(titles(drawn)).toEqual([
      'GPU 5 · H100 80GB HBM3, 80 GiB',
      'Other GPUs · 80 GiB each, H100 80GB HBM3'
    ]);
    expect(folded(drawn)[0]).toBe('GPU 0 · this kernel 410 MiB1.00 GiB');
  });

  it('show no more than four in full where the kernel works on all', () => {
    const all = Array.from({ length: 8 }, (_, index) => held(index, 40, [own(39)]));
    expect(titles(draw(all))).toHaveLength(5);
  });

  it('say once whether growth works, also if no GPU shows all details', () => {
    const growth: Growth = { state: 'on', text: 'memory growth on' };
    for (const devices of [eight(), eight({ 5: mine })]) {
      expect(draw(devices, { growth }).node.querySelectorAll('.jp-TfGuard-Growth')).toHaveLength(1);
    }
  });
});

describe('MIG', () => {
  const parent = card({ name: 'NVIDIA A100-SXM4-80GB', memory_used_bytes: 12 * GIB });

  it('shows an instance as a card of its own, and its GPU without a second bar', () => {
    const used = { memory_used_bytes: 4 * GIB, holders: [own(3.9)] };
    const note = 'This card is divided: see its instances.';
    const drawn = draw([{ ...parent, holders: null, note }, instance(0), instance(1, used)]);
    expect(drawn.text).not.toContain(note);
    expect(titles(drawn)).toEqual([
      'GPU 0 · A100-SXM4, 80 GiB',
      'GPU 0 · MIG 0 · 1g.10gb, 9.75 GiB',
      'GPU 0 · MIG 1 · 1g.10gb, 9.75 GiB'
    ]);
    expect(drawn.text).toContain('split into 2 MIG instances');
    expect(drawn.text).toContain('34 °C · 72 of 700 W');
    expect(drawn.node.querySelectorAll('.jp-TfGuard-bar')).toHaveLength(2);
    expect(rows(drawn)).toContain('in use4.00 of 9.75 GiB');
  });

  it('folds the instances that this kernel does not use where there are many', () => {
    const used = { memory_used_bytes: 4 * GIB, holders: [own(3.9)] };
    const seven = Array.from({ length: 7 }, (_, index) => instance(index, index === 4 ? used : {}));
    const drawn = draw([parent, ...seven]);
    expect(titles(drawn)).toEqual([
      'GPU 0 · A100-SXM4, 80 GiB',
      'GPU 0 · MIG 4 · 1g.10gb, 9.75 GiB',
      'Other MIG instances · 9.75 GiB each, 1g.10gb'
    ]);
    expect(folded(drawn)).toHaveLength(6);
    expect(folded(draw([parent, ...seven.slice(0, 3)]))[0]).toBe('GPU 0 · 3 MIG instances');
  });

  it('keeps a long list short until asked', async () => {
    const devices = Array.from({ length: 8 }, (_, nvml_index) => [
      card({ nvml_index }),
      ...Array.from({ length: 7 }, (_, index) => instance(index, { nvml_index }))
    ]).flat();
    const drawn = draw(devices);
    expect(folded(drawn)).toHaveLength(8);
    await drawn.click('.jp-TfGuard-Gpu > .jp-TfGuard-link');
    expect(folded(drawn)).toHaveLength(64);
  });
});
