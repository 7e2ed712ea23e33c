import * as React from 'react';

import type { Growth } from '../../wire';

import { GROWTH_SIGNS } from './growthSigns';

/** Whether TensorFlow takes GPU memory step by step, as a quiet line; louder where it does not. Null keeps its room. */
export function GrowthLine({ growth }: { growth: Growth | null }): React.JSX.Element {
  const sign = growth === null ? '' : GROWTH_SIGNS[growth.state];
  const mood = sign === '▲' ? 'jp-mod-warning' : 'jp-TfGuard-quiet';
  return (
    <div className={`jp-TfGuard-Growth jp-TfGuard-small ${mood}`}>
      <span aria-hidden="true">{sign}</span> {growth?.text}
    </div>
  );
}
