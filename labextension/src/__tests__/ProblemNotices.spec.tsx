import * as React from 'react';
import { describe, expect, it, vi } from 'vitest';

import { ProblemNotices } from '../live/ProblemNotices';
import { DismissedContext } from '../parts/kept';
import type { KeptSet } from '../parts/kept';

import { render } from './render';
import { trans } from './samples';

const NOW = Date.parse('2026-03-05T12:00:00Z') / 1000;
const AGO = { what: 'report: No space left', fix: 'Free some.', noted_at: NOW - 3600 };
const HOLDS = { what: 'tfguard is switched off', fix: 'Switch it on.', noted_at: null };

function draw(
  store: Pick<KeptSet, 'has' | 'toggle'> | null,
  noted_at = AGO.noted_at
): ReturnType<typeof render> {
  return render(
    <DismissedContext.Provider value={store}>
      <ProblemNotices problems={[HOLDS, { ...AGO, noted_at }]} now={NOW} trans={trans} />
    </DismissedContext.Provider>
  );
}

describe('a problem of tfguard itself', () => {
  it('has a time; a current problem has none', () => {
    const { node, text } = draw(null);
    expect(text).toMatch(/Recorded today \d\d:00/);
    expect(text.match(/Recorded/g)).toHaveLength(1);
    expect(node.querySelectorAll('button')).toHaveLength(1);
  });

  it('can be dismissed once it is over', async () => {
    const toggle = vi.fn<(name: string) => void>();
    await draw({ has: () => false, toggle }).click('button');
    const key = toggle.mock.lastCall![0];
    expect(draw({ has: name => name === key, toggle }).text).not.toContain('No space left');
    expect(draw({ has: name => name === key, toggle }, AGO.noted_at + 5).text).toContain(
      'No space left'
    );
  });
});
