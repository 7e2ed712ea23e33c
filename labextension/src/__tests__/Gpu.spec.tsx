import { describe, expect, it, vi } from 'vitest';

import { Series } from '../series';
import type { Growth } from '../wire';

import { card, GIB, held, holder, own, other } from './cards';
import { charts, draw, eight, folded, rows, tensors, titles, widths } from './gpuRig';

describe('One card', () => {
  it('draws what this kernel held of it, against what it has', () => {
    const series = new Series();
    series.push(1, 16 * GIB);
    const shown = [own(16), other('b.ipynb', 20)];
    draw([held(0, 40, shown)], { series: new Map([['GPU-0-', series]]) });
    expect(charts).toHaveLength(1);
    expect(charts[0]?.limit).toEqual({ value: 80 * GIB, label: 'GPU 0 80.0 GiB' });
    expect(charts[0]?.description).toBe(
      'Memory of this kernel on GPU 0, last 5 minutes: newest 16.0 GiB of 80.0 GiB, GPU 0'
    );
    draw([held(0, 40, [other('b.ipynb', 20)])], { series: new Map([['GPU-0-', series]]) });
    expect(charts).toHaveLength(1);
  });

  it('shows who holds what, this kernel first, as rows and as pieces of a bar', () => {
    const triton = holder({ pid: 4811, name: 'tritonserver', used_bytes: 2 * GIB });
    const drawn = draw([held(0, 40, [other('b.ipynb', 20), own(16), triton])]);
    expect(titles(drawn)).toEqual(['GPU 0 · H100 80GB HBM3, 80 GiB']);
    expect(rows(drawn)).toEqual([
      'in use40.0 of 80.0 GiB',
      'this kernel16.0 GiB',
      'held by b.ipynb20.0 GiB',
      'process 4811 · tritonserver2.00 GiB',
      'driver, display, hidden2.00 GiB'
    ]);
    expect(widths(drawn)).toEqual(['this 20%', 'notebook 25%', 'process 2.5%', 'rest 2.5%']);
    expect(drawn.text).toContain('34 °C · 72 of 700 W · 0 % busy');
  });

  it('goes to the notebook that holds memory, unless its path is one of the machine', async () => {
    const onOpenNotebook = vi.fn();
    const away = holder({ kernel_id: 'c', notebook_path: '/srv/c.ipynb', used_bytes: GIB });
    const drawn = draw([held(0, 40, [other('b.ipynb', 20), away])], { onOpenNotebook });
    expect(drawn.node.querySelectorAll('li button')).toHaveLength(1);
    await drawn.click('li button');
    expect(onOpenNotebook).toHaveBeenCalledWith('course/b.ipynb');
    expect(drawn.text).toContain('held by c.ipynb');
  });

  it('puts a kernel and its child processes into one row', () => {
    const child = holder({ kernel_id: 'b', used_bytes: 2 * GIB, pid: 12, name: 'python3' });
    const parent = { ...other('b', 3), pid: 11, notebook_path: 'b.ipynb' };
    const drawn = draw([held(0, 5, [parent, child])]);
    expect(rows(drawn)).toEqual(['in use5.00 of 80.0 GiB', 'held by b.ipynb5.00 GiB']);
    expect(drawn.node.querySelector('li [title]')?.getAttribute('title')).toContain('11, 12');
  });

  it('makes one row of many small processes', () => {
    const many = Array.from({ length: 9 }, (_, pid) =>
      holder({ pid, name: 'worker', used_bytes: GIB })
    );
    const drawn = draw([held(0, 20, [own(11), ...many])]);
    expect(drawn.node.querySelectorAll('.jp-TfGuard-list > li')).toHaveLength(5);
    expect(drawn.text).toContain('6 more6.00 GiB');
  });

  it('shows the tensors inside what the kernel holds, with their peak and limit', () => {
    const inside = [tensors({ peak_bytes: 15.8 * GIB, limit_bytes: 76 * GIB })];
    const drawn = draw([held(0, 19, [own(18.2)])], { inside });
    expect(drawn.text).toContain('this kernel18.2 GiB (14.9 in tensors)');
    expect(drawn.text).toContain('tensors: peak 15.8, limit 76.0 GiB');
  });

  it('follows the notebook in front, whatever the server called "this" before', () => {
    const drawn = draw([held(0, 19, [{ ...own(18.2), is_this: true }])], { kernelId: 'another' });
    expect(drawn.text).toContain('held by train.ipynb');
    expect(drawn.text).not.toContain('this kernel');
  });

  it.each([
    ['proven', '✓', false],
    ['on', '✓', false],
    ['async', '○', false],
    ['capped', '○', false],
    ['not_in_force', '▲', true],
    ['too_late', '▲', true]
  ] as const)('gives growth that is %s the sign %s', (state, sign, isLoud) => {
    const growth: Growth = { state, text: 'memory growth' };
    const line = draw([card()], { growth }).node.querySelector('.jp-TfGuard-Growth');
    expect(line?.textContent).toBe(`${sign} memory growth`);
    expect(line?.classList.contains('jp-mod-warning')).toBe(isLoud);
  });

  it('names its parts for those who do not see it', () => {
    const drawn = draw([held(0, 19, [own(18.2)])]);
    const section = drawn.node.querySelector('section');
    const label = section?.getAttribute('aria-labelledby') ?? '';
    expect(document.getElementById(label)?.textContent).toContain('GPU 0');
    expect(drawn.node.querySelector('.jp-TfGuard-bar')?.getAttribute('aria-hidden')).toBe('true');
  });
});

describe('What is not known', () => {
  it('is not a 0: hidden processes leave the use of the card, and why', () => {
    const note = 'Processes cannot be seen from inside this container.';
    const hidden = held(0, 30, [], { holders: null, other_bytes: null, note });
    const drawn = draw([hidden]);
    expect(rows(drawn)).toEqual(['in use30.0 of 80.0 GiB']);
    expect(widths(drawn)).toEqual(['rest 37.5%']);
    expect(drawn.text).toContain(note);
    const inside = draw([hidden], { inside: [tensors({ gpu_uuid: null })] });
    expect(rows(inside)).toContain('this kernel– (14.9 GiB in tensors)');
  });

  it('guesses no card for tensors where there are several', () => {
    const inside = [tensors({ gpu_uuid: null })];
    expect(draw([card(), card({ nvml_index: 1 })], { inside }).text).not.toContain('tensors');
  });

  it('leaves the amount open if the driver does not report it for a process', () => {
    const drawn = draw([held(0, 30, [own(null), other('b.ipynb', 10)], { other_bytes: null })]);
    expect(rows(drawn)).toEqual([
      'in use30.0 of 80.0 GiB',
      'this kernel–',
      'held by b.ipynb10.0 GiB',
      'in use, holder unknown20.0 GiB'
    ]);
  });

  it('has no bar, no facts, and no row of zeros', () => {
    const drawn = draw([
      card({
        memory_total_bytes: null,
        memory_used_bytes: null,
        utilization_fraction: null,
        temperature_celsius: null,
        power_watts: null,
        power_limit_watts: null,
        other_bytes: null,
        holders: null
      })
    ]);
    expect(titles(drawn)).toEqual(['GPU 0 · H100 80GB HBM3']);
    expect(rows(drawn)).toEqual(['in use–']);
    expect(drawn.node.querySelector('.jp-TfGuard-bar')).toBeNull();
    expect(drawn.text).not.toMatch(/\b0\b(?! ·)/);
  });
});

describe('Without a card', () => {
  it.each([
    ['none', null, 'No NVIDIA GPU found'],
    ['starting', null, 'Looking for GPUs…'],
    ['unavailable', 'The driver does not answer.', 'The driver does not answer.'],
    ['unavailable', null, 'GPU values are not available']
  ] as const)('says in one line why: %s', (state, reason, words) => {
    const drawn = draw([], { gpus: { state, reason, devices: [] } });
    expect(drawn.text).toBe(`GPU${words}`);
  });
});

describe('A lost card', () => {
  it('says so, and shows none of its last values', () => {
    const drawn = draw([held(0, 40, [own(39)], { lost: true })], { inside: [tensors()] });
    const notice = drawn.node.querySelector('[role="alert"]');
    expect(notice?.textContent).toContain('GPU 0 is lost');
    expect(drawn.node.querySelector('.jp-TfGuard-bar')).toBeNull();
    expect(rows(drawn)).toEqual(['in use– of 80.0 GiB']);
    expect(drawn.text).toContain('– °C · – W · – busy');
  });

  it('shows a lost GPU once if the server has an alarm for it', () => {
    const alarms = [{ severity: 'error' as const, text: 'It is gone.', fix: null, since: null }];
    const drawn = draw([card({ lost: true, alarms })]);
    expect(drawn.node.querySelectorAll('[role="alert"]')).toHaveLength(1);
  });

  it('shows all details among eight', () => {
    const drawn = draw(eight({ 2: card({ nvml_index: 2, lost: true }) }));
    expect(titles(drawn)[0]).toContain('GPU 2');
    expect(folded(drawn)).toHaveLength(7);
  });
});

it('keeps hostile names text', () => {
  const evil = '<img src=x onerror="alert(1)">';
  const alarms = [{ severity: 'warning' as const, text: evil, fix: evil, since: null }];
  const holders = [
    holder({ kernel_id: 'a', notebook_path: '<img src=x>', used_bytes: GIB }),
    holder({ name: evil, pid: 1, used_bytes: GIB })
  ];
  const drawn = draw([held(0, 9, holders, { name: evil, note: evil, alarms })]);
  expect(drawn.node.querySelector('img')).toBeNull();
  expect(drawn.text).toContain('held by <img src=x>');
  expect(drawn.text.split(evil)).toHaveLength(6);
});

it('elides a long name of a notebook in the middle', () => {
  const name = 'classify-images-of-the-whole-archive-2026.ipynb';
  const drawn = draw([held(0, 9, [other(name, 2)])]);
  expect(drawn.text).toContain('held by classify-images-o…2026.ipynb');
  expect(drawn.node.querySelector(`[title*="${name}"]`)).not.toBeNull();
});
