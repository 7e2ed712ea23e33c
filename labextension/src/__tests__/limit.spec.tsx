import * as React from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { aboutSpan, shortSpan } from '../live/forecastText';
import { LimitNotice } from '../live/LimitNotice';
import { LimitWarning } from '../live/LimitWarning';
import { atLimitText, limitLabel, limitText, memoryText, sharesText } from '../live/hostText';
import { isNearLimit, limitFraction, memoryShares } from '../live/memory';
import { statusText } from '../live/statusText';
import type { Brief } from '../currentKernel';
import { readStatus, readStreamMessage } from '../wire';
import type { Host, OtherKernel, Tick } from '../wire';

import { render } from './render';
import { sample, sampleText, trans } from './samples';

vi.mock('@jupyterlab/services', () => ({ ServerConnection: {} }));

const GIB = 2 ** 30;
const MIB = 2 ** 20;

function host(used: number, secondsLeft: number | null = null): Host {
  return {
    rss_bytes: used * GIB,
    peak_bytes: null,
    children_rss_bytes: null,
    swap_bytes: null,
    limit: { bytes: 8 * GIB, name: 'container limit', kind: 'cgroup' },
    used_bytes: used * GIB,
    forecast:
      secondsLeft === null
        ? null
        : {
            seconds_left: secondsLeft,
            bytes_per_second: 9.2 * MIB,
            low: 9 * MIB,
            high: 10 * MIB
          },
    available_bytes: null,
    time: 1
  };
}

function otherKernel(): OtherKernel {
  const message = readStreamMessage(sampleText('tick'));
  return (message as { tick: Tick }).tick.others[0];
}

function brief(changes: Partial<Brief> = {}): Brief {
  return {
    kernel_id: 'k',
    pid: 4711,
    execution_state: 'busy',
    run_since: null,
    watched: true,
    host: host(2),
    hang: null,
    ...changes
  };
}

describe('the time until the limit', () => {
  it.each([
    [3, 'about 10 seconds', '10 s'],
    [44, 'about 40 seconds', '40 s'],
    [58, 'about 1 minute', '1 min'],
    [214, 'about 4 minutes', '4 min'],
    [640, 'about 10 minutes', '10 min'],
    [1700, 'about 30 minutes', '30 min']
  ])('is said no finer than it is known: %s s', (seconds, about, short) => {
    expect(aboutSpan(seconds, trans)).toBe(about);
    expect(shortSpan(seconds, trans)).toBe(short);
  });

  it('stands in the panel with its rate, as a status and not as an alarm', () => {
    const { node, text } = render(<LimitNotice host={host(6, 214)} trans={trans} />);
    expect(text).toContain('Limit in about 4 minutes at 9 MiB/s.');
    expect(node.querySelector('[role=status]')?.textContent).toBe('Limit in about 4 minutes');
    expect(node.querySelector('[role=alert]')).toBeNull();
    expect(render(<LimitNotice host={host(6)} trans={trans} />).text).toBe('');
    expect(render(<LimitNotice host={host(7.5)} trans={trans} />).text).toContain('90 %');
  });

  it('stands in the status bar when it is minutes', () => {
    expect(statusText(brief({ host: host(7.4, 214) }), trans)).toBe(
      '▲ 7.4 of 8.0 GiB · limit in 4 min'
    );
    expect(statusText(brief({ host: host(5, 900) }), trans)).toBe('5.0 of 8.0 GiB');
    expect(statusText(brief({ host: host(7.4) }), trans)).toBe('▲ 7.4 of 8.0 GiB');
    const status = readStatus(sample('status'));
    expect(statusText(status.kernels[2] ?? null, trans)).toBe('');
  });

  it('counts what others hold of the limit, where the kernel has a share in it', () => {
    const shared = host(2);
    const limit = { bytes: 8 * GIB, name: 'container limit', kind: 'cgroup' };
    expect(limitFraction({ ...shared, limit, used_bytes: 7 * GIB })).toBe(7 / 8);
    const small = { ...host(0.5), limit, used_bytes: 7.9 * GIB };
    expect(limitFraction(small)).toBe(0.5 / 8);
  });

  it('judges by what the limit counts, not by resident memory that is charged elsewhere', () => {
    const charged = (used: number): Host => ({
      ...host(3.1),
      limit: { bytes: 3 * GIB, name: 'container limit', kind: 'cgroup' },
      used_bytes: used * GIB
    });
    expect(isNearLimit(charged(2.4))).toBe(false);
    expect(statusText(brief({ host: charged(2.4) }), trans)).toBe('2.4 of 3.0 GiB');
    expect(memoryText(charged(2.4), trans)).toBe('2.4 of 3.0 GiB');
    expect(statusText(brief({ host: charged(2.9) }), trans)).toBe('▲ 2.9 of 3.0 GiB');
  });

  it('shows what the limit counts, with the shares of others in a container', () => {
    const shared = (used: number): Host => ({
      ...host(2),
      limit: { bytes: 8 * GIB, name: 'container limit', kind: 'cgroup' },
      used_bytes: used * GIB
    });
    expect(statusText(brief({ host: shared(6) }), trans)).toBe('6.0 of 8.0 GiB');
    const other = { ...otherKernel(), rss_bytes: 3 * GIB };
    expect(sharesText(memoryShares(shared(6), [other]), trans)).toBe(
      'this kernel 2.0 GiB · other kernels 3.0 GiB · rest 1.0 GiB'
    );
    expect(sharesText(memoryShares(shared(4), [other]), trans)).toBe(
      'this kernel 2.0 GiB · other kernels 2.0 GiB · rest 0 B'
    );
    expect(statusText(brief({ host: shared(7.6) }), trans)).toBe('▲ 7.6 of 8.0 GiB');
  });
});

describe('a limit of address space', () => {
  const name = 'address space limit (ulimit -v)';
  const limited = (used: number): Host => ({
    ...host(0.2),
    limit: { bytes: 4 * GIB, name, kind: 'ulimit' },
    used_bytes: used * GIB
  });

  it('is read from the stream', () => {
    const message = readStreamMessage(sampleText('number_ulimit'));
    const read = message.type === 'number' ? message.fresh.host : null;
    expect(read && memoryText(read, trans)).toBe('12.0 of 16.0 GiB');
    expect(read && limitText(read, trans)).toBe(`${name} · 4.0 GiB still free`);
  });

  it('is told with what it counts, however little is resident', () => {
    expect(memoryText(limited(2.9), trans)).toBe('2.9 of 4.0 GiB');
    expect(memoryShares(limited(2.9), [])).toBeNull();
    expect(statusText(brief({ host: limited(2.9) }), trans)).toBe('2.9 of 4.0 GiB');
    expect(limitFraction(limited(2.9))).toBe(2.9 / 4);
    expect(statusText(brief({ host: limited(3.8) }), trans)).toBe('▲ 3.8 of 4.0 GiB');
  });

  it('has a short name in a chart, as other limits have theirs', () => {
    expect(limitLabel({ bytes: 4 * GIB, name })).toBe('ulimit -v 4.0 GiB');
    expect(limitLabel({ bytes: 8 * GIB, name: 'container limit' })).toBe('container limit 8.0 GiB');
  });

  it('does not kill, and nobody says so', () => {
    const near = render(<LimitNotice host={limited(3.8)} trans={trans} />).text;
    expect(near).toBe(
      '▲More than 90 % of the limit is used. At the limit no more memory is given; native code may crash then.'
    );
    expect(atLimitText(host(7), trans)).toBe('At the limit the kernel is killed.');
  });
});

describe('LimitWarning', () => {
  const shown: string[] = [];
  const dismissed = vi.fn();
  let warning: LimitWarning;

  const update = (changes: Partial<Brief>): void =>
    warning.update(brief(changes), 'course/train.ipynb', 'k');

  beforeEach(() => {
    vi.useFakeTimers();
    shown.length = 0;
    dismissed.mockClear();
    warning = new LimitWarning({
      show: message => {
        shown.push(message);
        return dismissed;
      },
      trans
    });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  it('warns once per run when the limit is expected within five minutes', () => {
    update({ host: host(4, 301) });
    expect(shown).toEqual([]);
    update({ host: host(4.5, 240) });
    update({ host: host(5) });
    update({ host: host(5.5, 120) });
    expect(shown).toEqual(['train.ipynb: memory will soon reach the container limit of 8.0 GiB.']);
  });

  it('warns when 90 % are passed while memory rises', () => {
    update({ host: host(7) });
    update({ host: host(7.3) });
    expect(shown).toEqual([
      'train.ipynb: memory rises and is near the container limit of 8.0 GiB.'
    ]);
  });

  it('does not warn of memory that is high and stays', () => {
    update({ host: host(7.5) });
    update({ host: host(7.52) });
    update({ host: host(7.4) });
    expect(shown).toEqual([]);
  });

  it('goes when memory falls, and does not come again in the same run', () => {
    update({ host: host(7, 60) });
    update({ host: host(7.1) });
    expect(dismissed).not.toHaveBeenCalled();
    update({ host: host(6) });
    expect(dismissed).toHaveBeenCalledTimes(1);
    update({ host: host(7, 60) });
    expect(shown).toHaveLength(1);
  });

  it('goes when the run ends; a moment of idleness between two cells ends none', () => {
    update({ host: host(7, 60) });
    update({ execution_state: 'idle', host: host(7) });
    vi.advanceTimersByTime(1_000);
    update({ host: host(7, 60) });
    expect(dismissed).not.toHaveBeenCalled();
    update({ execution_state: 'idle', host: host(7) });
    vi.advanceTimersByTime(4_000);
    update({ execution_state: 'idle', host: host(7) });
    expect(dismissed).toHaveBeenCalledTimes(1);
    update({ host: host(7, 60) });
    expect(shown).toHaveLength(2);
  });

  it('takes a restart, and a death, for the end of the run', () => {
    update({ host: host(7, 60) });
    update({ pid: null, host: { ...host(0), used_bytes: null } });
    expect(dismissed).toHaveBeenCalledTimes(1);
    update({ pid: 4800, host: host(7, 60) });
    expect(shown).toHaveLength(2);
  });

  it('warns of each notebook by itself', () => {
    update({ host: host(7, 60) });
    warning.update(brief({ kernel_id: 'other', host: host(7, 60) }), 'eda.ipynb', 'other');
    expect(shown).toHaveLength(2);
    expect(dismissed).not.toHaveBeenCalled();
  });

  it('takes all away when it is switched off', () => {
    update({ host: host(7, 60) });
    warning.clear();
    expect(dismissed).toHaveBeenCalledTimes(1);
  });

  it('does not warn of what is not known', () => {
    update({ host: { ...host(0), used_bytes: null, limit: null } });
    warning.update(null, null, null);
    expect(shown).toEqual([]);
  });

  /** What a page tells that looks elsewhere, every two seconds. */
  const lookAt = (seconds: number, path: string | null, kernelId: string | null): void => {
    for (let passed = 0; passed < seconds; passed += 2) {
      vi.advanceTimersByTime(2_000);
      warning.update(null, path, kernelId);
    }
  };

  it('goes at once when its notebook has no kernel any more, or another one', () => {
    update({ host: host(7, 60) });
    warning.update(null, 'course/train.ipynb', null);
    expect(dismissed).toHaveBeenCalledTimes(1);
    update({ host: host(7, 60) });
    warning.update(null, 'course/train.ipynb', 'next');
    expect(dismissed).toHaveBeenCalledTimes(2);
  });

  it('goes some time after the user went to another notebook: nobody knows how the run goes on', () => {
    update({ host: host(7, 60) });
    lookAt(20, 'eda.ipynb', 'other');
    expect(dismissed).not.toHaveBeenCalled();
    lookAt(20, 'eda.ipynb', 'other');
    expect(dismissed).toHaveBeenCalledTimes(1);
  });

  it('comes for what runs when the user is back after long, whatever happened meanwhile', () => {
    update({ host: host(7, 60) });
    vi.advanceTimersByTime(3600_000);
    update({ host: host(1) });
    expect(dismissed).toHaveBeenCalledTimes(1);
    update({ host: host(7, 60) });
    expect(shown).toHaveLength(2);
  });

  it('does not come again for the same run when the user is back after long', () => {
    update({ run_since: 100, host: host(7, 60) });
    lookAt(60, 'eda.ipynb', 'other');
    expect(dismissed).toHaveBeenCalledTimes(1);
    update({ run_since: 100, host: host(7.1, 50) });
    update({ run_since: 100, host: host(7.2, 40) });
    expect(shown).toHaveLength(1);
  });

  it('comes for the next run when the user is back in the moment between the two', () => {
    update({ run_since: 100, host: host(7, 60) });
    lookAt(60, 'eda.ipynb', 'other');
    update({ run_since: 100, execution_state: 'idle', host: host(5) });
    update({ run_since: 160, host: host(7.1, 50) });
    expect(shown).toHaveLength(2);
  });

  it('comes for the next run, however short the time between them', () => {
    update({ run_since: 100, host: host(7, 60) });
    lookAt(60, 'eda.ipynb', 'other');
    update({ run_since: 130, host: host(7.1, 50) });
    expect(shown).toHaveLength(2);
    lookAt(60, 'eda.ipynb', 'other');
    update({ run_since: 130, pid: 5000, host: host(7.1, 50) });
    expect(shown).toHaveLength(3);
  });

  it('neither goes nor comes twice while the server is away for a moment', () => {
    update({ host: host(7, 60) });
    lookAt(12, 'course/train.ipynb', 'k');
    update({ host: host(7.1, 50) });
    expect(dismissed).not.toHaveBeenCalled();
    expect(shown).toHaveLength(1);
  });

  it('stays for a user whose page was hidden or asleep while the run went on', () => {
    const old = brief({ run_since: 100, host: host(7, 60) });
    warning.update(old, 'course/train.ipynb', 'k');
    for (let hours = 0; hours < 2; hours++) {
      vi.advanceTimersByTime(3600_000);
      warning.update(old, 'course/train.ipynb', 'k'); // before new numbers come
    }
    update({ run_since: 100, host: host(7.1, 50) });
    expect(dismissed).not.toHaveBeenCalled();
    expect(shown).toHaveLength(1);
    update({ run_since: 100, execution_state: 'idle', host: host(7.1) });
    vi.advanceTimersByTime(4_000);
    update({ run_since: 100, execution_state: 'idle', host: host(7.1) });
    expect(dismissed).toHaveBeenCalledTimes(1);
  });

  it.each([
    ['another one runs', brief({ run_since: 200, host: host(2) })],
    ['none runs', brief({ run_since: 100, execution_state: 'idle', host: host(7) })]
  ])('goes when the page was hidden and %s now', (_, now) => {
    update({ run_since: 100, host: host(7, 60) });
    vi.advanceTimersByTime(3600_000);
    warning.update(now, 'course/train.ipynb', 'k');
    expect(dismissed).toHaveBeenCalledTimes(1);
  });

  it('takes the numbers that it had for no news', () => {
    const old = brief({ host: host(7, 60) });
    for (let seconds = 0; seconds <= 32; seconds += 2) {
      warning.update(old, 'course/train.ipynb', 'k');
      vi.advanceTimersByTime(2_000);
    }
    expect(dismissed).toHaveBeenCalledTimes(1);
    expect(shown).toHaveLength(1);
  });
});
