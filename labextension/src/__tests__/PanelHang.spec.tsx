import { describe, expect, it, vi } from 'vitest';

import { statusText } from '../live/statusText';

import { draw, kernel } from './panelRig';
import type { IRendered } from './render';
import { trans } from './samples';

vi.mock('../chart/timeChart', () => ({
  TimeChart: class {
    draw = vi.fn();
    dispose = vi.fn();
  }
}));

describe('Panel of a kernel that hangs', () => {
  it('says that a kernel hangs, and shows its threads', async () => {
    const onShowStacks = vi.fn();
    const hung = kernel(1);
    const since = hung.hang?.since ?? 0;
    hung.host.time = since + 720;
    const drawn = draw({ kernel: hung }, vi.fn(), onShowStacks);
    expect(drawn.text).toContain(
      'The cell seems to hang: no CPU, disk or GPU activity. No progress for 12 min.'
    );
    expect(drawn.text).toContain(
      'Its main thread is waiting for a lock, without a timeout. Python is at line 4 of the cell, in load.'
    );
    await drawn.click('.jp-TfGuard-Hang .jp-TfGuard-link');
    expect(onShowStacks).toHaveBeenCalledWith(hung.kernel_id);
  });

  it('says that a fit makes no step while the kernel computes', () => {
    const hung = kernel(1);
    const hang = hung.hang && { ...hung.hang, in_fit: true, computes: true, text: null };
    const drawn = draw({ kernel: { ...hung, hang } });
    expect(drawn.text).toContain('The fit makes no step, although the kernel is computing.');
    expect(drawn.text).toContain('Python is at line 4 of the cell, in load.');
    expect(drawn.text).not.toMatch(/seems to hang|main thread/);
  });

  it('measures a hang by the clock of the server, else by its own', () => {
    const hung = kernel(1);
    const since = hung.hang?.since ?? 0;
    hung.host.time = since + 720;
    expect(draw({ kernel: hung }, vi.fn(), vi.fn(), since + 7200).text).toContain(
      'No progress for 12 min'
    );
    hung.host.time = null;
    expect(draw({ kernel: hung }, vi.fn(), vi.fn(), since + 300).text).toContain(
      'No progress for 5 min'
    );
  });

  it('has no span that grows within an alarm: it would be read out again and again', () => {
    const alarms = ({ node }: IRendered): string =>
      [...node.querySelectorAll('[role=alert]')].map(alarm => alarm.textContent).join();
    const hung = kernel(1);
    hung.guard.problems.length = 0;
    const hanging = (seconds: number): IRendered => {
      hung.host.time = (hung.hang?.since ?? 0) + seconds;
      return draw({ kernel: hung });
    };
    expect(alarms(hanging(720))).toContain('The cell seems to hang');
    expect(alarms(hanging(1440))).toBe(alarms(hanging(720)));
    const away = (staleSeconds: number): IRendered => draw({ server: 'away', staleSeconds });
    expect(alarms(away(47))).toContain('The server is not responding.');
    expect(alarms(away(47))).toBe(alarms(away(2)));
    expect(away(47).text).toContain('Values are 45 s old.');
  });

  it('says so in the status bar too', () => {
    const hung = { ...kernel(0), hang: kernel(1).hang };
    expect(statusText(hung, trans)).toMatch(/^▲ no progress · \d/);
    expect(statusText(kernel(0), trans)).not.toContain('no progress');
  });

  it('names the killed worker that a hanging fit waits for', () => {
    const hung = kernel(1);
    const killed = ['The system log says that process 15 was killed; it held 1.10 GiB'];
    const hang = { ...hung.hang!, in_fit: true, worker_killed: killed };
    const { text } = draw({ kernel: { ...hung, hang } });
    expect(text).toContain('The training waits for its answer and will never get it.');
    expect(text).toContain('it held 1.10 GiB.');
    expect(text).toContain('use fewer workers');
    expect(text).not.toContain('something outside the kernel');
  });

  it('offers no stacks where the kernel gave none, and is silent while it works', () => {
    const hung = kernel(1);
    const bare = { ...hung, hang: hung.hang === null ? null : { ...hung.hang, has_stacks: false } };
    expect(draw({ kernel: bare }).node.querySelector('.jp-TfGuard-Hang button')).toBeNull();
    expect(draw().node.querySelector('.jp-TfGuard-Hang')).toBeNull();
  });
});
