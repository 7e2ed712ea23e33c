import type { TranslationBundle } from '@jupyterlab/translation';

import type { Confidence } from './wire';

/** Translates into the user's language. */
export type Trans = Pick<TranslationBundle, '__' | '_n'>;

/** The confidence of a finding as a word. */
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
