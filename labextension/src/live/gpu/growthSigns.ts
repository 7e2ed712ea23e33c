import type { Growth } from '../../wire';

/** ✓ as it should be; ○ nothing to do; ▲ memory growth is not what the user counts on. */
export const GROWTH_SIGNS: Record<Growth['state'], '✓' | '○' | '▲'> = {
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
