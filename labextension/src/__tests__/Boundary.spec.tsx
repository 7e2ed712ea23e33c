import * as React from 'react';
import { describe, expect, it, vi } from 'vitest';

import { Boundary, Reloadable } from '../parts/Boundary';

import { render } from './render';
import { trans } from './samples';

describe('an error in one section', () => {
  it('leaves the others, is logged, and is over after a reload', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    let isBroken = true;
    function Broken(): React.JSX.Element {
      if (isBroken) {
        throw new Error('no such thing');
      }
      return <p>as before</p>;
    }
    const panel = render(
      <Reloadable label="Reload panel" trans={trans}>
        <Boundary>
          <p>first</p>
        </Boundary>
        <Boundary>
          <Broken />
        </Boundary>
        <Boundary>
          <p>last</p>
        </Boundary>
      </Reloadable>
    );
    expect(panel.text).toBe('first✕This section stopped working.Reload panellast');
    expect(logged.mock.calls.flat()).toContain('jupyter-tfguard: a section stopped working.');
    isBroken = false;
    await panel.click('button');
    expect(panel.text).toBe('firstas beforelast');
  });
});
