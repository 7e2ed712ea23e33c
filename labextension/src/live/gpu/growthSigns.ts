import type { Growth } from '../../wire';

/** ✓ memory growth works; ○ does not apply; ▲ memory growth is not active as expected. */
export const GROWTH_SIGNS: Record<Growth['state'], '✓' | '○' | '▲'> = {
  on: '✓',
  proven: '✓',
  not_in_force: '▲',
  off_by_user: '○',
  too_late: '▲',
  capped: '○',
  async: '○',
  no_gpu: '○',
  unknown: '○'
};
