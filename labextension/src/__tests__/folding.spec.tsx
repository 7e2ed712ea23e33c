import * as React from 'react';
import { describe, expect, it, vi } from 'vitest';

import { FoldingContext, KeptSet } from '../parts/kept';
import { Section } from '../parts/Section';

import { render } from './render';
import { PATIENT } from './patience';

function section(): React.JSX.Element {
  return (
    <Section name="Gpu" title="GPU 0" aside="A100">
      <p>inside</p>
    </Section>
  );
}

describe('Section', () => {
  it('cannot be folded in a report', () => {
    const { node, text } = render(section());
    expect(node.querySelector('button')).toBeNull();
    expect(node.querySelector('h3')?.textContent).toBe('GPU 0 · A100');
    expect(text).toContain('inside');
  });

  it('is folded and unfolded by its title in the panel, which says so', async () => {
    const toggle = vi.fn();
    const draw = (isFolded: boolean): ReturnType<typeof render> =>
      render(
        <FoldingContext.Provider value={{ has: name => isFolded && name === 'GPU 0', toggle }}>
          {section()}
        </FoldingContext.Provider>
      );
    const open = draw(false);
    expect(open.node.querySelector('button')?.getAttribute('aria-expanded')).toBe('true');
    expect(open.text).toContain('inside');
    await open.click('button');
    expect(toggle).toHaveBeenCalledWith('GPU 0');
    const folded = draw(true);
    expect(folded.node.querySelector('button')?.getAttribute('aria-expanded')).toBe('false');
    expect(folded.text).not.toContain('inside');
  });
});

describe('KeptSet', () => {
  it('is kept, and read again', async () => {
    const state = {
      fetch: vi.fn().mockResolvedValue(['Training', 7]),
      save: vi.fn().mockResolvedValue(undefined)
    };
    const changed = vi.fn();
    const folding = new KeptSet('folded', state, changed);
    await vi.waitFor(() => expect(changed).toHaveBeenCalledTimes(1), PATIENT);
    expect(folding.has('Training')).toBe(true);
    folding.toggle('GPU 0');
    folding.toggle('Training');
    expect(folding.has('GPU 0')).toBe(true);
    expect(state.save).toHaveBeenLastCalledWith('jupyter-tfguard:folded', ['GPU 0']);
  });

  it('works where nothing can be kept', () => {
    const folding = new KeptSet('folded', null, vi.fn());
    folding.toggle('Training');
    expect(folding.has('Training')).toBe(true);
  });
});
