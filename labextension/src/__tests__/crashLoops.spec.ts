import { expect, it } from 'vitest';

import { deathRows } from '../live/crashLoops';
import { readCrashes } from '../wire';

import { sample } from './samples';

it('folds equal crashes below the newest of them', () => {
  const rows = deathRows(readCrashes(sample('crashes')));
  expect(rows.map(({ entry, others }) => [entry.id, others.map(({ id }) => id)])).toEqual([
    ['20261121-021407-4711-k3f9', []],
    ['20261121-011902-4655-c0de', []],
    ['20261119-170231-2201-9ab1', ['20261119-165010-2188-41be', '20261119-164107-2170-0d3c']],
    ['20261118-080000-990-77aa', []]
  ]);
});
