import { describe, expect, it } from 'vitest';

import { deathRows } from '../live/crashLoops';
import type { CrashEntry } from '../wire';
import { readCrashes } from '../wire';

import { sample } from './samples';

const [plain] = readCrashes(sample('crashes'));

function death(id: string, minute: number, changes: Partial<CrashEntry> = {}): CrashEntry {
  const died_at = new Date(Date.UTC(2026, 10, 21, 2, minute)).toISOString();
  return { ...plain, id, died_at, kernel_id: 'k', kernel_alive: false, group: null, ...changes };
}

function group(minute: number): CrashEntry['group'] {
  return {
    deaths_count: 900,
    kernels_count: 1,
    kernels_count_is_exact: true,
    one_kernel: true,
    first_at: new Date(Date.UTC(2026, 10, 21, 2, minute)).toISOString(),
    last_at: new Date(Date.UTC(2026, 10, 21, 2, 59)).toISOString(),
    causes: []
  };
}

const ids = (crashes: CrashEntry[]): string[][] =>
  deathRows(crashes).map(({ entry, others }) => [entry.id, ...others.map(({ id }) => id)]);

describe('deathRows', () => {
  it('folds deaths of one kernel that follow each other, whatever died between', () => {
    const crashes = [
      death('d', 30),
      death('x', 29, { kernel_id: 'other' }),
      death('c', 21),
      death('b', 12),
      death('a', 1)
    ];
    expect(ids(crashes)).toEqual([['d', 'c', 'b'], ['x'], ['a']]);
  });

  it('leaves two deaths, unknown kernels and kernels that live on for themselves', () => {
    expect(ids([death('b', 2), death('a', 1)])).toEqual([['b'], ['a']]);
    const unknown = [3, 2, 1].map(minute => death(`${minute}`, minute, { kernel_id: null }));
    expect(ids(unknown)).toEqual([['3'], ['2'], ['1']]);
    const child = death('child', 3, { kernel_alive: true });
    expect(ids([child, death('b', 2), death('a', 1)])).toEqual([['child'], ['b'], ['a']]);
  });

  it('puts the reports from before a count below it', () => {
    const crashes = [death('g', 59, { group: group(13) }), death('b', 12), death('old', 1)];
    expect(ids(crashes)).toEqual([['g', 'b'], ['old']]);
    const later = death('later', 59);
    expect(ids([later, ...crashes])).toEqual([['later'], ['g', 'b'], ['old']]);
  });
});
