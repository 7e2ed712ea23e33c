import * as React from 'react';

import type { Growth } from '../../wire';

import { GROWTH_SIGNS } from './growthSigns';

/** The state of memory growth; a warning if it is not active as expected. Null keeps the space. */
export function GrowthLine({ growth }: { growth: Growth | null }): React.JSX.Element {
  const sign = growth === null ? '' : GROWTH_SIGNS[growth.state];
  const mood = sign === '▲' ? 'jp-mod-warning' : 'jp-TfGuard-quiet';
  return (
    <div className={`jp-TfGuard-Growth jp-TfGuard-small ${mood}`}>
      <span aria-hidden="true">{sign}</span> {growth?.text}
    </div>
  );
}
