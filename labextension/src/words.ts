import type { TranslationBundle } from '@jupyterlab/translation';

import type { Confidence } from './wire';

/** What turns our English into the user's language. */
export type Trans = Pick<TranslationBundle, '__' | '_n'>;

/** How sure a finding is, as a word. */
export function confidenceWord(confidence: Confidence, trans: Trans): string {
  switch (confidence) {
    case 'certain':
      return trans.__('certain');
    case 'likely':
      return trans.__('likely');
    case 'possible':
      return trans.__('possible');
  }
}
