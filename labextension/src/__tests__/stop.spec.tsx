import * as React from 'react';
import { describe, expect, it } from 'vitest';

import { stopDrawing } from '../live/stop';
import { Drawn } from '../parts/Drawn';
import type { Stop } from '../wire';

import { render } from './render';
import type { IRendered } from './render';
import { trans } from './samples';

const MIB = 2 ** 20;

function draw(changes: Partial<Stop> = {}, isNear = false): IRendered {
  const stop: Stop = { state: 'on', stop_bytes: 46 * MIB, notes: [], ...changes };
  return render(<Drawn make={host => stopDrawing(host, trans)} read={() => ({ stop, isNear })} />);
}

describe('the row of the stop', () => {
  it('shows the state and the threshold', () => {
    expect(draw().text).toBe('✓ Stops a cell when less than 46 MiB is left');
    expect(draw({ state: 'paused', stop_bytes: null }).text).toBe(
      '○ Stop paused (%tfguard resume)'
    );
    expect(draw({ state: 'off' }).text).toBe('○ Stop off');
    expect(draw({ state: 'unavailable', stop_bytes: null }).text).toBe(
      '○ Stop not available on this system'
    );
  });

  it('warns near the threshold, as a status', () => {
    const { node } = draw({}, true);
    const warning = node.querySelector('.jp-TfGuard-Notice.jp-mod-warning');
    expect(warning?.textContent).toBe(
      '▲ Memory is nearly full. tfguard stops the cell when less than 46 MiB is left.'
    );
    expect(warning?.querySelector('[role=status]')).not.toBeNull();
    expect(draw().node.querySelector('.jp-mod-warning')).toBeNull();
  });

  it('names what does not work here, and why', () => {
    const note = 'Not active for NumPy: This NumPy has no memory handler.';
    expect(draw({ notes: [note] }).text).toContain(note);
  });
});
