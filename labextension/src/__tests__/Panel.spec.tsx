import { describe, expect, it, vi } from 'vitest';

import { copy, draw, kernel } from './panelRig';
import { crashEntries, sample } from './samples';

vi.mock('../chart/timeChart', () => ({
  TimeChart: class {
    draw = vi.fn();
    dispose = vi.fn();
  }
}));

describe('Panel', () => {
  it('shows memory with its limit and the name of the limit', () => {
    const { text } = draw();
    expect(text).toContain('TF Guard · train.ipynb');
    expect(text).toContain('guarding');
    expect(text).toContain('5.90 GiB');
    expect(text).toContain('of 8.00 GiBcontainer limit');
    expect(text).toContain('✓ memory growth on, seen working');
  });

  it('has room for training before it starts, once TensorFlow is there', () => {
    const lines = (training: unknown): number => {
      const { node } = draw({ kernel: { ...kernel(0), training } });
      return node.querySelectorAll('.jp-TfGuard-Training > div > *').length;
    };
    expect(lines(null)).toBe(lines(kernel(0).training));
    const guard = { ...kernel(0).guard, growth: null };
    const { node } = draw({ kernel: { ...kernel(0), guard, training: null } });
    expect(node.querySelector('.jp-TfGuard-Training')).toBeNull();
  });

  it('keeps its other sections where one stops working', () => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const unreadable = kernel(0);
    unreadable.cells = null as never;
    unreadable.training!.logs = null as never;
    const others = [{ ...sample('tick').others[0], notebook_path: 7 }];
    const { text } = draw({ kernel: unreadable, others });
    expect(text).toContain('of 8.00 GiBcontainer limit');
    expect(text).toContain('GPU');
    expect(text).toContain('Past crashes');
  });

  it('shows where the training is', () => {
    const { node, text } = draw();
    expect(text).toContain('epoch 3 of 10 · step 219 of 313');
    expect(text).toContain('4.2 steps/s · 9 min left');
    expect(text).toContain('batch size 32 · loss 0.412');
    const bar = node.querySelector('[role="progressbar"]');
    expect(bar?.getAttribute('aria-valuenow')).toBe('27');
  });

  it('says that a fit was not started', () => {
    const refused = { ...kernel(0).training!, active: false, refused: true, ended: 1795227288 };
    const { node } = draw({ kernel: { ...kernel(0), training: refused } });
    const card = node.querySelector('[data-section="Training"]') ?? node;
    expect(card.textContent).toContain('not started: it needs more memory than is available');
    expect(card.textContent).not.toContain('ended');
    expect(card.querySelector('[role="progressbar"]')).toBeNull();
  });

  it('shows a training loop by its steps: how much is done is not known', () => {
    const unknown = { model_name: null, parameter_count: null, batch_size: null, logs: {} };
    const endless = { epoch: null, epochs: null, steps: null, seconds_left: null };
    const training = {
      ...kernel(0).training,
      ...unknown,
      ...endless,
      kind: 'loop',
      step: 974,
      steps_per_second: 195
    };
    const { node, text } = draw({ kernel: { ...kernel(0), training } });
    expect(text).toContain('Training loopstep 974195 steps/sAdam');
    expect(text).not.toContain('No training yet.');
    expect(node.querySelector('[role="progressbar"]')).toBeNull();
    const isHidden = '.jp-TfGuard-Training .jp-TfGuard-bar.jp-mod-unknown';
    expect(node.querySelector(isHidden)).not.toBeNull();
    const onGpu = { ...training, step: null, steps_per_second: null };
    expect(draw({ kernel: { ...kernel(0), training: onGpu } }).text).toContain('steps unknown');
    const none = draw({ kernel: { ...kernel(0), training: null } }).node;
    expect(none.querySelector(isHidden)).not.toBeNull();
  });

  it('has no training card and no word of growth in a kernel without TensorFlow', () => {
    const { node, text } = draw({ kernel: kernel(1) });
    expect(node.querySelector('.jp-TfGuard-Training')).toBeNull();
    expect(text).not.toMatch(/growth|TensorFlow/i);
  });

  it('says how to get the guard into a kernel that lacks it', () => {
    const { text } = draw({ kernel: kernel(1) });
    expect(text).toContain('The guard is not loaded in this kernel');
    expect(text).toContain('jupyter tfguard enable --kernel conda-env-r');
    expect(text).toContain('limit unknown');
  });

  it('says why a kernel is not tracked, and shows no number for it', () => {
    const { node, text } = draw({ kernel: kernel(2) });
    expect(text).toContain('remote kernel, not tracked here');
    expect(node.querySelector('.jp-TfGuard-HostMemory')).toBeNull();
  });

  it('shows unknown memory as a dash', () => {
    const unknown = kernel(0);
    unknown.host.used_bytes = null;
    expect(draw({ kernel: unknown }).node.querySelector('.jp-TfGuard-big')?.textContent).toBe('–');
  });

  it('says so near the limit, calmly', () => {
    const full = kernel(0);
    const used = 7.9 * 2 ** 30;
    full.host.rss_bytes = full.host.used_bytes = used;
    const notice = draw({ kernel: full }).node.querySelector('.jp-TfGuard-LimitNotice');
    expect(notice?.textContent).toContain('More than 90 %');
    expect(draw().node.querySelector('.jp-TfGuard-LimitNotice:not([hidden])')).toBeNull();
  });

  it.each([
    [{ target: null, kernel: null }, 'Open a notebook or a console'],
    [{ target: { path: 'a.ipynb', kernelId: null }, kernel: null }, 'No kernel is running.'],
    [{ kernel: null, hasAnswer: false }, 'Waiting for the first values…'],
    [{ kernel: null }, 'This server does not manage the kernel'],
    [{ server: 'absent' as const }, 'Restart Jupyter, then reload this page.'],
    [{ server: 'away' as const, staleSeconds: 47 }, 'Values are 45 s old.'],
    [
      { server: 'refused' as const, trouble: '500 Broken' },
      'The server returned an error.500 Broken'
    ],
    [
      { server: 'locked' as const, trouble: 'Forbidden' },
      'The server denied access to this page.Log in again, then reload this page.'
    ],
    [
      { problems: [{ what: 'Disk full.', fix: 'Free some.', noted_at: null }] },
      'Disk full.Free some.'
    ]
  ])('explains the state %j', (state, words) => {
    expect(draw(state).text).toContain(words);
  });

  it('shows no numbers where the server part is not loaded', () => {
    const { node } = draw({ server: 'absent' });
    expect(node.querySelector('.jp-TfGuard-HostMemory')).toBeNull();
    expect(node.querySelector('.jp-TfGuard-Gpu')).toBeNull();
  });

  it('greys old values while the server is away', () => {
    const { node, text } = draw({ server: 'away', staleSeconds: 12 });
    expect(text).toContain('The server is not responding. Values are 10 s old.');
    expect(draw({ server: 'away', staleSeconds: 2 }).text).not.toContain('old');
    expect(node.querySelector('.jp-mod-stale .jp-TfGuard-HostMemory')).not.toBeNull();
  });

  it('shows each GPU, or one line where there is none', () => {
    expect(draw().text).toContain('No NVIDIA GPU found');
    const { text } = draw({ gpus: sample('status').gpus });
    expect(text).toContain('GPU 0 · A100-SXM4, 40 GiB');
    expect(text).toContain('in use27.9 of 40.0 GiB');
    expect(text).toContain('this kernel18.2 GiB (14.9 in tensors)');
    expect(text).toContain('71 °C · 288 of 400 W · 83 % busy');
  });

  it('says once whether memory growth works: at a card, or where there is none in a line of its own', () => {
    const gpus = sample('status').gpus;
    expect(draw({ gpus }).node.querySelectorAll('.jp-TfGuard-Growth')).toHaveLength(1);
    expect(draw({ gpus }).node.querySelector('.jp-TfGuard-Gpu .jp-TfGuard-Growth')).not.toBeNull();
    expect(draw().node.querySelector('.jp-TfGuard-Guard .jp-TfGuard-Growth')).not.toBeNull();
  });

  it('says in one place that there is no GPU', () => {
    const alone = kernel(0);
    alone.guard.growth = { state: 'no_gpu', text: 'memory growth set; no NVIDIA GPU here' };
    expect(draw({ kernel: alone }).text.match(/no NVIDIA GPU/gi)).toHaveLength(1);
  });

  it('shows a GPU out-of-memory error that the kernel survived, until it is dismissed', async () => {
    const onDismiss = vi.fn();
    const event = { ...kernel(0).gpu_oom, kind: 'gpu_oom' };
    const state = { outOfMemory: [event] };
    const drawn = draw(state, vi.fn(), vi.fn(), event.time + 60, onDismiss);
    const notice = drawn.node.querySelector('.jp-TfGuard-OutOfMemory');
    expect(notice?.textContent).toMatch(
      /The GPU ran out of memory in cell \[11\] \(today \d\d:\d\d\)/
    );
    expect(notice?.textContent).toContain('The kernel is still running.');
    const lines = [...(notice?.querySelectorAll('li') ?? [])].map(line => line.textContent ?? '');
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(/^Asked for 8\.0 GiB, free 5\.1 GiB of 37\.0 GiB/);
    expect(lines.slice(1)).toEqual(event.lines.slice(1));
    await drawn.click('.jp-TfGuard-OutOfMemory button');
    expect(onDismiss).toHaveBeenCalledWith(event);
    expect(draw().node.querySelector('.jp-TfGuard-OutOfMemory')).toBeNull();
  });

  it('shows a stopped cell, with the code that continues the fit to be copied', async () => {
    const event = { ...kernel(0).memory_stop, kind: 'memory_stop' };
    const drawn = draw({ outOfMemory: [event] }, vi.fn(), vi.fn(), event.time + 60);
    const notice = drawn.node.querySelector('.jp-TfGuard-OutOfMemory');
    expect(notice?.textContent).toMatch(
      /Memory was nearly full in cell \[10\] \(today \d\d:\d\d\)\. The kernel is still running\./
    );
    const lines = [...(notice?.querySelectorAll('li') ?? [])];
    expect(lines).toHaveLength(event.lines.length);
    expect(lines[0]?.textContent).toMatch(/^Stopped this cell before .*180 MiB of 8\.0 GiB/);
    const [saved, code] = [...lines[3].childNodes].map(node => node.textContent ?? '');
    expect(saved).toMatch(/^Model and optimizer are saved in .* as before\. Then:$/);
    expect(code).toMatch(/^import tfguard\nepoch = tfguard\.resume\(model, "\/home/);
    await drawn.click('.jp-TfGuard-CodeBlock button');
    expect(copy.write).toHaveBeenCalledWith(
      drawn.node.querySelector('.jp-TfGuard-CodeBlock code')?.textContent
    );
  });

  it.each([
    ['not_started', /A run in cell \[10\] was not started \(today \d\d:\d\d\): it needs more/],
    ['beside', /tfguard stopped what an earlier cell had left running \(today/],
    ['refused', /A request for memory in cell \[10\] was refused \(today \d\d:\d\d\)/],
    [null, /Memory was nearly full in cell \[10\]/]
  ])('says what was refused: %s', (what, title) => {
    const lines = ['fit() with batch_size=64 needs at least 3.10 GiB more memory.', 'kept has 9.'];
    const event = { ...kernel(0).memory_stop, kind: 'memory_stop', what, lines };
    const { node } = draw({ outOfMemory: [event] }, vi.fn(), vi.fn(), event.time + 60);
    const notice = node.querySelector('.jp-TfGuard-OutOfMemory');
    expect(notice?.textContent).toMatch(title);
    // Code keeps its case.
    const shown = [...(notice?.querySelectorAll('li') ?? [])].map(line => line.textContent);
    expect(shown).toEqual(lines);
  });

  it('shows that memory grows steadily, and what grows with it', () => {
    const event = { ...kernel(0).leak, kind: 'leak' };
    const { node } = draw({ outOfMemory: [event] }, vi.fn(), vi.fn(), event.time + 60);
    const notice = node.querySelector('.jp-TfGuard-OutOfMemory');
    expect(notice?.textContent).toMatch(
      /Memory grows steadily in cell \[11\] \(today \d\d:\d\d\)\./
    );
    const lines = [...(notice?.querySelectorAll('li') ?? [])].map(line => line.textContent ?? '');
    expect(lines).toEqual(event.lines);
  });

  it('shows what other kernels hold, of the GPU too where that is known', () => {
    const [known, unknown] = sample('tick').others;
    const { node } = draw({
      others: [known, unknown, { ...known, kernel_id: 'x', gpu_bytes: 0 }]
    });
    const rows = [...node.querySelectorAll('.jp-TfGuard-Others li')].map(row => row.textContent);
    expect(rows).toEqual(['eda.ipynb614 MiB · GPU 9.10 GiB', 'big.ipynb–', 'eda.ipynb614 MiB']);
  });

  it('greets a new user', () => {
    expect(draw().text).toContain('No crashes yet.');
  });

  it('lists crashes, the unread ones apart, and opens their reports', async () => {
    const onOpen = vi.fn();
    const [first, ...others] = crashEntries();
    const crashes = [{ ...first, unsaved: 'No space left on device.' }, ...others];
    const drawn = draw({ crashes }, onOpen);
    expect(drawn.text).toContain('not saved');
    expect(drawn.node.querySelectorAll('.jp-TfGuard-Crash')).toHaveLength(4);
    expect(drawn.node.querySelectorAll('.jp-TfGuard-Crash.jp-mod-unread')).toHaveLength(2);
    expect(drawn.text).toContain('train.ipynb · cell [12] · epoch 1, step 3');
    expect(drawn.text).toContain('still running');
    await drawn.click('[data-report-id="20261119-170231-2201-9ab1"]');
    expect(onOpen).toHaveBeenCalledWith('20261119-170231-2201-9ab1');
  });

  it('folds equal crashes', async () => {
    const crashes = crashEntries().slice(2, 5);
    const drawn = draw({ crashes });
    expect(drawn.node.querySelectorAll('.jp-TfGuard-Crash')).toHaveLength(1);
    expect(drawn.text).toContain('3 × Segmentation fault in native code');
    await drawn.click('.jp-TfGuard-SameCrashes > .jp-TfGuard-link');
    expect(drawn.node.querySelectorAll('.jp-TfGuard-Crash')).toHaveLength(3);
    expect(drawn.node.querySelector('[aria-expanded="true"]')?.textContent).toBe('Show fewer');
  });

  it('gives no part of a section the class of another section', () => {
    const crashes = crashEntries();
    const { node } = draw({ crashes, others: sample('tick').others });
    const sections = [...node.querySelectorAll('.jp-TfGuard-Section')].map(
      section => section.classList[1]
    );
    for (const name of sections) {
      expect(node.querySelectorAll(`.${name}`), name).toHaveLength(1);
    }
  });

  it('keeps a long list short until asked', async () => {
    const [first] = crashEntries();
    const crashes = Array.from({ length: 30 }, (_, index) => ({
      ...first,
      id: `id-${index}`,
      kernel_id: `kernel-${index}`
    }));
    const drawn = draw({ crashes });
    expect(drawn.node.querySelectorAll('.jp-TfGuard-Crash')).toHaveLength(8);
    await drawn.click('.jp-TfGuard-Crashes > .jp-TfGuard-link');
    expect(drawn.node.querySelectorAll('.jp-TfGuard-Crash')).toHaveLength(30);
  });

  it('keeps hostile names text', () => {
    const evil = '<img src=x onerror="alert(1)">';
    const hostile = kernel(0);
    hostile.guard.text = evil;
    hostile.training!.model_name = evil;
    hostile.host.limit!.name = evil;
    const crashes = crashEntries().map(entry => ({
      ...entry,
      short_title: evil,
      notebook_path: evil
    }));
    const { node, text } = draw({
      kernel: hostile,
      crashes,
      target: { path: evil, kernelId: 'k' }
    });
    expect(node.querySelector('img')).toBeNull();
    expect(text.split(evil).length).toBeGreaterThan(7);
  });
});
