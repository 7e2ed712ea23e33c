import * as React from 'react';
import { describe, expect, it, vi } from 'vitest';

import { Report } from '../postmortem/Report';
import { readReport } from '../wire';

import { render } from './render';
import type { IRendered } from './render';
import { sample, trans } from './samples';

const charts = vi.hoisted(() => ({ drawn: [] as unknown[] }));

vi.mock('../chart/timeChart', () => ({
  TimeChart: class {
    update = (data: unknown): void => void charts.drawn.push(data);
    dispose = vi.fn();
  }
}));

const write = vi.fn<(text: string) => Promise<void>>().mockResolvedValue(undefined);
const copy = { label: 'Copy', done: 'Copied', failed: 'Not copied', write };

const onForget = vi.fn();

function draw(change: (report: ReturnType<typeof sample>) => void = () => undefined): IRendered {
  const raw = sample('report');
  change(raw);
  return render(
    <Report
      report={readReport(raw)}
      copy={copy}
      markdown={async () => '# Kernel report'}
      onForget={onForget}
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
    expect(node.querySelector('h1')?.textContent).toContain('all of its container');
    expect([...node.querySelectorAll('.jp-TfGuard-chip')].map(chip => chip.textContent)).toEqual([
      'certain',
      'SIGKILL by the out-of-memory killer',
      'peak 7.98 GiB'
    ]);
  });

  it('has all sections that have something to say, in order', () => {
    expect(headings(draw())).toEqual([
      'What you were doing',
      'What to do',
      'How we know',
      'What speaks against it',
      'Not checked',
      'Also seen',
      'What is left',
      'Largest arrays',
      'Last native words'
    ]);
  });

  it('always says what speaks against it and what was not checked', () => {
    const { text } = draw(report => {
      report.against = [];
      report.not_checked = [];
    });
    expect(text).toContain('Nothing found.');
    expect(text).toContain('Everything that applies was checked.');
  });

  it('shows what else was seen with its evidence and the first thing to do', () => {
    const also = draw().node.querySelector('.jp-TfGuard-OtherFindings');
    expect(also?.textContent).toContain('The machine was swapping');
    expect(also?.textContent).toContain('swapped out at the last sample');
    expect(also?.textContent).toContain('More swap would not help.');
    const titles = draw(report => {
      report.other_findings = [{ cause: 'a', confidence: 'possible', title: 'An older report.' }];
    });
    expect(titles.text).toContain('An older report.');
  });

  it('leaves out what is not there', () => {
    const drawn = draw(report => {
      report.memory = null;
      report.left = { metrics: null, checkpoint: null };
      report.arrays = [];
      report.native_tail = [];
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
      limit: { value: 8589934592, label: 'container limit 8.0 GiB' },
      marks: [{ label: '[7] load' }, { label: '[12] fit' }],
      end: { time: 1795227247.123 },
      description: 'Memory of the kernel before its end: highest 8.0 GiB; container limit 8.0 GiB'
    });
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
    expect(write).toHaveBeenLastCalledWith('# Kernel report');
    write.mockRejectedValueOnce(new Error('no clipboard'));
    await drawn.click('footer .jp-TfGuard-button');
    expect(drawn.text).toContain('Not copied');
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
      report.native_tail = [evil];
      report.python_stack = [evil];
      report.left = {
        metrics: { columns: [evil], rows: [[evil]] },
        checkpoint: { path: evil, written_at: evil }
      };
      report.versions = { [evil]: evil };
    });
    expect(node.querySelector('img, script')).toBeNull();
    expect(text.split(evil)).toHaveLength(21);
  });

  it('reads a group of deaths like any report, and can be forgotten', async () => {
    const group = sample('crashes').crashes[4];
    const drawn = draw(report => Object.assign(report, group, { memory: null, activity: [] }));
    expect(drawn.text).toContain('This kernel died 995 more times');
    const button = [...drawn.node.querySelectorAll('button')].find(
      ({ textContent }) => textContent === 'Forget…'
    );
    button?.click();
    expect(onForget).toHaveBeenCalledTimes(1);
  });
});
