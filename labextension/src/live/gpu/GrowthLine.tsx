import * as React from 'react';

import type { Growth } from '../../wire';

type State = Growth['state'];

/** ✓ as it should be; ○ nothing to do; ▲ memory growth is not what the user counts on. */
const SIGNS: Record<State, '✓' | '○' | '▲'> = {
  on: '✓',
  proven: '✓',
  not_in_force: '▲',
  off_by_user: '○',
  too_late: '▲',
  mixed: '▲',
  capped: '○',
  async: '○',
  no_gpu: '○',
  unknown: '○'
};

/** Whether TensorFlow takes GPU memory step by step, as a quiet line; louder where it does not. */
export function GrowthLine({ growth }: { growth: Growth }): React.JSX.Element {
  const sign = SIGNS[growth.state];
  const mood = sign === '▲' ? 'jp-mod-warning' : 'jp-TfGuard-quiet';
  return (
    <div className={`jp-TfGuard-Growth jp-TfGuard-small ${mood}`}>
      <span aria-hidden="true">{sign}</span> {growth.text}
    </div>
  );
}
