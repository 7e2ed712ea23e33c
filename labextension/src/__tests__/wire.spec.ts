import { describe, expect, it } from 'vitest';

import { ShapeError } from '../check';
import { readCrashes, readDeath, readReport, readStatus, readStreamMessage } from '../wire';

import { sample, sampleText } from './samples';

describe('wire', () => {
  it('reads every sample', () => {
    expect(readStatus(sample('status')).kernels.map(kernel => kernel.watched)).toEqual([
      true,
      true,
      false
    ]);
    expect(readCrashes(sample('crashes'))).toHaveLength(6);
    expect(readReport(sample('report')).memory?.samples).toHaveLength(241);
    expect(readDeath(sample('event')).cause).toBe('cgroup_oom');
  });

  it('reads a death of a kernel without an id, which files alone tell of', () => {
    const crashes = sample('crashes');
    crashes.crashes[0].kernel_id = null;
    expect(readCrashes(crashes)[0]?.kernel_id).toBeNull();
  });

  it('reads both kinds of stream message', () => {
    const tick = readStreamMessage(sampleText('tick'));
    const history = readStreamMessage(sampleText('history'));
    expect(tick.type === 'tick' && tick.tick.kernel?.training?.step).toBe(219);
    expect(history.type === 'history' && history.history.rows).toHaveLength(60);
  });

  it('reads numbers, of a kernel that is not known too, and the hint of a death', () => {
    const number = readStreamMessage(sampleText('number'));
    expect(number.type === 'number' && number.fresh.host?.forecast?.seconds_left).toBe(214.6);
    const unknown = readStreamMessage('{"type": "number", "time": 1, "kernel_id": null}');
    expect(unknown.type === 'number' && unknown.fresh.host).toBeNull();
    expect(readStreamMessage('{"type": "deaths"}')).toEqual({ type: 'deaths' });
  });

  it('passes over a kind of message that it does not know', () => {
    expect(readStreamMessage('{"type": "weather", "rain": true}')).toEqual({ type: 'other' });
  });

  it('keeps an unknown value unknown, and takes a missing key as unknown', () => {
    const status = sample('status');
    delete status.kernels[0].host.swap_bytes;
    const read = readStatus(status);
    expect(read.kernels[0]?.host.swap_bytes).toBeNull();
    expect(read.kernels[2]?.host.rss_bytes).toBeNull();
  });

  it('tells processes that cannot be seen from a card that nobody holds', () => {
    const status = sample('status');
    status.gpus.devices[0].holders = [];
    const [empty, hidden] = readStatus(status).gpus.devices;
    expect(empty?.holders).toEqual([]);
    expect(hidden?.holders).toBeNull();
    expect(hidden?.memory_used_bytes).toBeNull();
  });

  it('keeps metrics in the order they came, words included', () => {
    const tick = sample('tick');
    tick.kernel.training.logs = { val_loss: 'nan', loss: 0.5, extra: null };
    const read = readStreamMessage(JSON.stringify(tick));
    expect(read.type === 'tick' && [...(read.tick.kernel?.training?.logs ?? [])]).toEqual([
      ['val_loss', 'nan'],
      ['loss', 0.5],
      ['extra', null]
    ]);
  });

  it.each([
    ['a number as text', (status: Sample) => (status.server_time = '12')],
    ['a text as number', (status: Sample) => (status.version = 1)],
    ['a missing list', (status: Sample) => delete status.kernels],
    ['an unknown state', (status: Sample) => (status.gpus.state = 'melted')],
    ['a card that may be lost', (status: Sample) => delete status.gpus.devices[0].lost],
    ['a card without alarms', (status: Sample) => (status.gpus.devices[0].alarms = null)],
    ['a holder of text', (status: Sample) => (status.gpus.devices[0].holders[0].used_bytes = '1')],
    ['a quiet alarm', (status: Sample) => (status.gpus.devices[0].alarms[0].severity = 'info')],
    ['a strange growth', (status: Sample) => (status.kernels[0].guard.growth.state = 'shrunk')],
    ['a kernel without cells', (status: Sample) => delete status.kernels[0].cells],
    ['a limit without bytes', (status: Sample) => delete status.kernels[0].host.limit.bytes],
    ['a flag as number', (status: Sample) => (status.kernels[0].watched = 1)],
    ['a list as object', (status: Sample) => (status.problems = {})]
  ])('refuses %s', (_name, spoil) => {
    const status = sample('status');
    spoil(status);
    expect(() => readStatus(status)).toThrow(ShapeError);
  });

  it('says where a text differs', () => {
    const report = sample('report');
    report.evidence[2].text = null;
    expect(() => readReport(report)).toThrow(
      'report.evidence[2].text: expected a text, found nothing'
    );
  });

  it('refuses history in other columns', () => {
    const history = sample('history');
    history.columns.reverse();
    expect(() => readStreamMessage(JSON.stringify(history))).toThrow(ShapeError);
  });

  it('refuses what is not JSON', () => {
    expect(() => readStreamMessage('NaN of 8 GiB')).toThrow(SyntaxError);
  });
});

type Sample = ReturnType<typeof sample>;
