import * as React from 'react';
import { describe, expect, it, vi } from 'vitest';

import { Report } from '../postmortem/Report';

import { render } from './render';
import type { IRendered } from './render';
import { sample, trans } from './samples';

const charts = vi.hoisted(() => ({ drawn: [] as unknown[] }));

vi.mock('../chart/timeChart', () => ({
  TimeChart: class {
    draw = (data: unknown): void => void charts.drawn.push(data);
    dispose = vi.fn();
  }
}));

const write = vi.fn<(text: string) => Promise<void>>().mockResolvedValue(undefined);
const copy = { label: 'Copy', done: 'Copied', failed: 'Copy failed', write };

const onForget = vi.fn();
const onExport = vi.fn();
const onSeeAll = vi.fn();
const api = { markdown: async () => '# Crash report' };

function draw(change: (report: ReturnType<typeof sample>) => void = () => undefined): IRendered {
  const raw = sample('report');
  change(raw);
  return render(
    <Report
      report={raw}
      copy={copy}
      api={api}
      onExport={onExport}
      onForget={onForget}
      onSeeAll={onSeeAll}
      trans={trans}
    />
  );
}

function headings(drawn: IRendered): string[] {
  return [...drawn.node.querySelectorAll('h3')].map(heading => heading.textContent ?? '');
}

describe('Report', () => {
  it('begins with the sentence, then says how sure it is', () => {
    const { node } = draw();
    expect(node.querySelector('h2')?.textContent).toContain('all of its container');
    expect([...node.querySelectorAll('.jp-TfGuard-chip')].map(chip => chip.textContent)).toEqual([
      'certain',
      'SIGKILL by the out-of-memory killer',
      'peak 7.98 GiB'
    ]);
  });

  it('says that it could not be saved', () => {
    const drawn = draw(report => {
      report.unsaved = 'It could not be saved. Free some disk space.';
    });
    expect(drawn.node.querySelector('.jp-mod-warning')?.textContent).toContain('Free some disk');
    expect(draw().text).not.toContain('could not be saved');
  });

  it('has all sections that have something to say, in order', () => {
    expect(headings(draw())).toEqual([
      'What to do',
      'What you were doing',
      'How we know',
      'Evidence against it',
      'Not checked',
      'Other findings',
      'Checkpoint and metrics',
      'Largest arrays',
      'Last lines of stderr'
    ]);
  });

  it('always shows the evidence against it and what was not checked', () => {
    const { text } = draw(report => {
      report.against = [];
      report.not_checked = [];
    });
    expect(text).toContain('Nothing found.');
    expect(text).toContain('Everything relevant was checked.');
  });

  it('shows what else was seen with its evidence and the first thing to do', () => {
    const also = draw().node.querySelector('.jp-TfGuard-OtherFindings');
    expect(also?.textContent).toContain('The machine was swapping');
    expect(also?.textContent).toContain('swapped out at the last sample');
    expect(also?.textContent).toContain('Do not add swap.');
  });

  it('leaves out what is not there', () => {
    const drawn = draw(report => {
      report.memory = null;
      report.left = { metrics: null, checkpoint: null };
      report.arrays = [];
      report.stderr_tail = [];
      report.other_findings = [];
    });
    expect(headings(drawn)).toHaveLength(5);
    expect(drawn.text).not.toContain('undefined');
  });

  it('shows who says each fact', () => {
    const sources = [...draw().node.querySelectorAll('.jp-TfGuard-Evidence .jp-TfGuard-source')];
    expect(sources.map(source => source.textContent)).toEqual([
      'server',
      'server',
      'system log',
      'kernel',
      'server'
    ]);
  });

  it('gives the chart the curve, the limit, the marks and the end', () => {
    charts.drawn.length = 0;
    draw();
    expect(charts.drawn[0]).toMatchObject({
      limit: { value: 8589934592, label: 'container limit 8.00 GiB' },
      marks: [
        { kind: 'cell', label: '[7]' },
        { kind: 'fit', label: '[12] fit' },
        { kind: 'epoch', label: 'epoch 2' },
        { kind: 'checkpoint', label: 'checkpoint' },
        { kind: 'warning', label: '90 % of the limit' }
      ],
      end: { time: 1795227247.123 },
      description: 'Kernel memory before the crash: peak 7.98 GiB; container limit 8.00 GiB'
    });
  });

  it('draws a GPU in a chart of its own, with its own limit', () => {
    charts.drawn.length = 0;
    draw();
    expect(charts.drawn[1]).toMatchObject({
      limit: { value: 25769803776, label: 'GPU 0 memory 24.0 GiB' },
      marks: []
    });
  });

  it('hides and shows a line by its name', async () => {
    const drawn = draw();
    const button = drawn.node.querySelector('button.jp-TfGuard-line');
    expect(button?.textContent).toBe('In use in the container');
    expect(button?.getAttribute('aria-pressed')).toBe('true');
    charts.drawn.length = 0;
    await drawn.click('button.jp-TfGuard-line');
    expect(button?.getAttribute('aria-pressed')).toBe('false');
    expect(charts.drawn[0]).toMatchObject({ lines: [{ times: [], values: [] }] });
  });

  it('shows the raw line of a log below what it says', () => {
    const raw = draw().node.querySelector('.jp-TfGuard-Evidence .jp-TfGuard-raw');
    expect(raw?.textContent).toContain('Memory cgroup out of memory: Killed process 4711');
  });

  it('shows how to resume from the last checkpoint if known', () => {
    const left = draw().node.querySelector('.jp-TfGuard-Left');
    expect(left?.textContent).toContain(
      "keras.models.load_model('course/checkpoints/model-02.keras')"
    );
    expect(left?.querySelector('[role=alert]')?.textContent).toContain('may be incomplete');
    const without = draw(report => {
      report.left.checkpoint.resume_code = null;
      report.left.checkpoint.doubt = null;
    });
    expect(without.text).not.toContain('To resume from it');
    expect(without.node.querySelector('.jp-TfGuard-Left [role=alert]')).toBeNull();
  });

  it('shows earlier crashes with the same cause, with a link', async () => {
    const drawn = draw();
    expect(drawn.text).toContain('2 earlier crashes with the same cause in this notebook');
    await drawn.click('.jp-TfGuard-link');
    expect(onSeeAll).toHaveBeenCalledOnce();
    const first = draw(report => {
      report.same_before_count = 0;
    });
    expect(first.text).not.toContain('earlier death');
  });

  it('copies the code of an advice, and says so', async () => {
    const drawn = draw();
    await drawn.click('.jp-TfGuard-Advice .jp-TfGuard-button');
    expect(write).toHaveBeenLastCalledWith(
      'history = model.fit(x_train, y_train, batch_size=1024, epochs=10)'
    );
    expect(drawn.text).toContain('Copied');
  });

  it('copies itself as Markdown, and says if that failed', async () => {
    const drawn = draw();
    await drawn.click('footer .jp-TfGuard-button');
    expect(write).toHaveBeenLastCalledWith('# Crash report');
    write.mockRejectedValueOnce(new Error('no clipboard'));
    await drawn.click('footer .jp-TfGuard-button');
    expect(drawn.text).toContain('Copy failed');
  });

  it('shows metrics by epoch with unknown ones as a dash', () => {
    const rows = [...draw().node.querySelectorAll('.jp-TfGuard-Left tbody tr')];
    expect(rows.map(row => [...row.children].map(cell => cell.textContent))).toEqual([
      ['1', '2.30', '0.101', '–'],
      ['2', '1.98', '0.254', '2.03']
    ]);
  });

  it('keeps hostile texts text, wherever they stand', () => {
    const evil = '<img src=x onerror="alert(1)"><script>alert(2)</script>';
    const { node, text } = draw(report => {
      report.title = evil;
      report.chips = [evil];
      report.evidence = [{ source: evil, text: evil }];
      report.against = [{ source: 'system log', text: evil }];
      report.not_checked = [evil];
      report.advice = [{ title: evil, text: evil, code: evil }];
      report.activity = [{ label: evil, value: evil, code: true }];
      report.arrays = [{ name: evil, bytes: 1 }];
      report.stderr_tail = [evil];
      report.python_stack = [evil];
      report.left = {
        metrics: { columns: [evil], rows: [[evil]] },
        checkpoint: { path: evil, written_at: null, doubt: evil }
      };
      report.versions = { [evil]: evil };
    });
    expect(node.querySelector('img, script')).toBeNull();
    expect(text.split(evil)).toHaveLength(21);
  });

  it('can be forgotten', () => {
    const drawn = draw();
    const button = [...drawn.node.querySelectorAll('button')].find(
      ({ textContent }) => textContent === 'Delete…'
    );
    button?.click();
    expect(onForget).toHaveBeenCalledTimes(1);
  });
});
