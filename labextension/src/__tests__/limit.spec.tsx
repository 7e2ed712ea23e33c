import { describe, expect, it, vi } from 'vitest';

import { aboutSpan, shortSpan } from '../live/forecastText';
import { atLimitText, limitLabel, limitText, memoryText, sharesText } from '../live/hostText';
import { isNearLimit, limitFraction, memoryShares } from '../live/memory';
import { limitDrawing } from '../live/memoryDrawing';
import { statusText } from '../live/statusText';
import type { Brief, Host, OtherKernel } from '../wire';

import { sample, trans } from './samples';

vi.mock('../chart/timeChart', () => ({ TimeChart: class {} }));

const GIB = 2 ** 30;
const MIB = 2 ** 20;

function host(used: number, secondsLeft: number | null = null): Host {
  return {
    rss_bytes: used * GIB,
    children_rss_bytes: null,
    details: [],
    limit: { bytes: 8 * GIB, name: 'container limit', kind: 'cgroup' },
    used_bytes: used * GIB,
    forecast:
      secondsLeft === null
        ? null
        : {
            seconds_left: secondsLeft,
            bytes_per_second: 9.2 * MIB
          },
    time: 1
  };
}

function notice(shown: Host): { node: HTMLElement; text: string } {
  const node = document.createElement('div');
  limitDrawing(node, trans).draw(shown);
  return { node, text: node.hidden ? '' : (node.textContent ?? '') };
}

function otherKernel(): OtherKernel {
  return sample('tick').others[0];
}

function brief(changes: Partial<Brief> = {}): Brief {
  return {
    kernel_id: 'k',
    pid: 4711,
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

  it('is in the panel with its rate, as a status and not as an alarm', () => {
    const { node, text } = notice(host(6, 214));
    expect(text).toContain('Limit in about 4 minutes at 9 MiB/s.');
    expect(node.querySelector('[role=status]')?.textContent).toBe('Limit in about 4 minutes');
    expect(node.querySelector('[role=alert]')).toBeNull();
    expect(notice(host(6)).text).toBe('');
    expect(notice(host(7.5)).text).toContain('90 %');
  });

  it('is in the status bar when it is minutes', () => {
    expect(statusText(brief({ host: host(7.4, 214) }), trans)).toBe(
      '▲ 7.40 of 8.00 GiB · limit in 4 min'
    );
    expect(statusText(brief({ host: host(5, 900) }), trans)).toBe('5.00 of 8.00 GiB');
    expect(statusText(brief({ host: host(7.4) }), trans)).toBe('▲ 7.40 of 8.00 GiB');
    const status = sample('status');
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
    expect(statusText(brief({ host: charged(2.4) }), trans)).toBe('2.40 of 3.00 GiB');
    expect(memoryText(charged(2.4), trans)).toBe('2.40 of 3.00 GiB');
    expect(statusText(brief({ host: charged(2.9) }), trans)).toBe('▲ 2.90 of 3.00 GiB');
  });

  it('shows what the limit counts, with the shares of others in a container', () => {
    const shared = (used: number): Host => ({
      ...host(2),
      limit: { bytes: 8 * GIB, name: 'container limit', kind: 'cgroup' },
      used_bytes: used * GIB
    });
    expect(statusText(brief({ host: shared(6) }), trans)).toBe('6.00 of 8.00 GiB');
    const other = { ...otherKernel(), rss_bytes: 3 * GIB };
    expect(sharesText(memoryShares(shared(6), [other]), trans)).toBe(
      'this kernel 2.00 GiB · other kernels 3.00 GiB · rest 1.00 GiB'
    );
    expect(sharesText(memoryShares(shared(4), [other]), trans)).toBe(
      'this kernel 2.00 GiB · other kernels 2.00 GiB · rest 0 B'
    );
    expect(statusText(brief({ host: shared(7.6) }), trans)).toBe('▲ 7.60 of 8.00 GiB');
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
    const read = sample('number_ulimit').host;
    expect(memoryText(read, trans)).toBe('12.0 of 16.0 GiB');
    expect(limitText(read, trans)).toBe(`${name} · 4.00 GiB free`);
  });

  it('is shown with what it counts, even if little is resident', () => {
    expect(memoryText(limited(2.9), trans)).toBe('2.90 of 4.00 GiB');
    expect(memoryShares(limited(2.9), [])).toBeNull();
    expect(statusText(brief({ host: limited(2.9) }), trans)).toBe('2.90 of 4.00 GiB');
    expect(limitFraction(limited(2.9))).toBe(2.9 / 4);
    expect(statusText(brief({ host: limited(3.8) }), trans)).toBe('▲ 3.80 of 4.00 GiB');
  });

  it('has a short name in a chart, as other limits have theirs', () => {
    expect(limitLabel({ bytes: 4 * GIB, name })).toBe('ulimit -v 4.00 GiB');
    expect(limitLabel({ bytes: 8 * GIB, name: 'container limit' })).toBe(
      'container limit 8.00 GiB'
    );
  });

  it('does not kill, and the text does not say so', () => {
    const near = notice(limited(3.8)).text;
    expect(near).toBe(
      '▲More than 90 % of the limit is in use. At the limit, allocations fail and native code may crash.'
    );
    expect(atLimitText(host(7), trans)).toBe('At the limit, the system kills the kernel.');
  });
});
