/** The guard in a kernel: its name and state, its problems, and memory growth. */
import { element, sign, write } from '../parts/dom';
import type { IDrawing } from '../parts/dom';
import type { Growth, Guard } from '../wire';
import type { Trans } from '../trans';

export type Mood = 'good' | 'warning' | 'error' | 'quiet';

const SIGNS: Record<Mood, string> = { good: '●', warning: '▲', error: '✕', quiet: '○' };

/** ✓ memory growth works; ○ does not apply; ▲ memory growth is not active as expected. */
const GROWTH_SIGNS: Record<Growth['state'], '✓' | '○' | '▲'> = {
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

export interface IHeader {
  /** Of the notebook; null if there is none. */
  readonly name: string | null;
  /** Its path. */
  readonly hint: string;
  readonly mood: Mood;
  readonly text: string;
}

/** The title, and the state of the guard; sign, color and text have the same meaning. */
export function headerDrawing(root: HTMLElement, trans: Trans): IDrawing<IHeader> {
  const aside = element('span', 'jp-TfGuard-aside');
  const title = element('div', 'jp-TfGuard-title', trans.__('TF Guard'), aside);
  title.setAttribute('role', 'heading');
  title.setAttribute('aria-level', '2');
  const mark = sign();
  const words = document.createTextNode('');
  const state = element('span', 'jp-TfGuard-State', mark, ' ', words);
  root.classList.add('jp-TfGuard-header');
  root.append(title, state);
  return {
    draw: ({ hint, mood, name, text }) => {
      aside.title = hint;
      write(aside, name === null ? '' : ` · ${name}`);
      state.className = `jp-TfGuard-State jp-mod-${mood}`;
      write(mark, SIGNS[mood]);
      write(words, text);
    }
  };
}

/** A notice for each problem. A screen reader announces them once, so they are drawn only if they changed. */
export function problemsDrawing(root: HTMLElement): IDrawing<Guard['problems']> {
  let drawn = '';
  root.classList.add('jp-TfGuard-Problems');
  return {
    draw: problems => {
      const text = JSON.stringify(problems);
      if (text !== drawn) {
        drawn = text;
        root.replaceChildren(...problems.map(problemNotice));
      }
    }
  };
}

function problemNotice(problem: string): HTMLElement {
  const body = element('div', 'jp-TfGuard-Notice-body', problem);
  const notice = element(
    'div',
    'jp-TfGuard-Notice jp-mod-warning',
    sign('jp-TfGuard-Notice-sign', '▲'),
    body
  );
  notice.setAttribute('role', 'alert');
  return notice;
}

/** The state of memory growth; a warning if it is not active as expected. Null keeps the space. */
export function growthDrawing(root: HTMLElement): IDrawing<Growth | null> {
  const mark = sign();
  const words = document.createTextNode('');
  root.append(mark, ' ', words);
  return {
    draw: growth => {
      const shown = growth === null ? '' : GROWTH_SIGNS[growth.state];
      const mood = shown === '▲' ? 'jp-mod-warning' : 'jp-TfGuard-quiet';
      root.className = `jp-TfGuard-Growth jp-TfGuard-small ${mood}`;
      write(mark, shown);
      write(words, growth?.text ?? '');
    }
  };
}
