import * as React from 'react';
import { describe, expect, it, vi } from 'vitest';

import { DismissedContext, DismissedProblems } from '../live/dismissedProblems';
import { ProblemNotices } from '../live/ProblemNotices';

import { render } from './render';
import { trans } from './samples';

const NOW = Date.parse('2026-03-05T12:00:00Z') / 1000;
const AGO = { what: 'report: No space left', fix: 'Free some.', noted_at: NOW - 3600 };
const HOLDS = { what: 'tfguard is switched off', fix: 'Switch it on.', noted_at: null };

function draw(store: Pick<DismissedProblems, 'has' | 'add'> | null): ReturnType<typeof render> {
  return render(
    <DismissedContext.Provider value={store}>
      <ProblemNotices problems={[HOLDS, AGO]} now={NOW} trans={trans} />
    </DismissedContext.Provider>
  );
}

describe('a problem of tfguard itself', () => {
  it('is told with its time; one that holds has none', () => {
    const { node, text } = draw(null);
    expect(text).toMatch(/Noted today \d\d:00/);
    expect(text.match(/Noted/g)).toHaveLength(1);
    expect(node.querySelector('button')).toBeNull();
  });

  it('can be dismissed once it is over', async () => {
    const add = vi.fn();
    const { node, click } = draw({ has: () => false, add });
    expect(node.querySelectorAll('button')).toHaveLength(1);
    await click('button');
    expect(add).toHaveBeenCalledWith(AGO);
    expect(draw({ has: problem => problem === AGO, add }).text).not.toContain('No space left');
  });
});

describe('what was dismissed', () => {
  it('is kept, and told again only when it was noted anew', async () => {
    const kept = [['report: No space left', NOW - 3600], 7, ['cut off']];
    const state = {
      fetch: vi.fn().mockResolvedValue(kept),
      save: vi.fn().mockRejectedValue(new Error('full'))
    };
    const changed = vi.fn();
    const dismissed = new DismissedProblems(state, changed);
    await vi.waitFor(() => expect(changed).toHaveBeenCalledTimes(1));
    expect(dismissed.has(AGO)).toBe(true);
    const anew = { ...AGO, noted_at: NOW };
    expect([dismissed.has(anew), dismissed.has(HOLDS)]).toEqual([false, false]);
    dismissed.add(anew);
    dismissed.add(HOLDS);
    expect([dismissed.has(anew), dismissed.has(HOLDS)]).toEqual([true, false]);
    expect(changed).toHaveBeenCalledTimes(2);
    expect(state.save.mock.calls).toEqual([
      ['jupyter-tfguard:dismissed-problems', [['report: No space left', NOW]]]
    ]);
  });

  it('is not kept where JupyterLab keeps no state', () => {
    const dismissed = new DismissedProblems(null, vi.fn());
    dismissed.add(AGO);
    expect(dismissed.has(AGO)).toBe(true);
  });
});
