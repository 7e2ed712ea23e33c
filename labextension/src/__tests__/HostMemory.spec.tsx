import * as React from 'react';
import { Signal } from '@lumino/signaling';
import { act } from 'react';
import { describe, expect, it, vi } from 'vitest';

import { HostMemory } from '../live/HostMemory';
import type { GuardModel } from '../model';

import { render } from './render';
import { sample, trans } from './samples';

vi.mock('@jupyterlab/services', () => ({ ServerConnection: {} }));
vi.mock('../chart/timeChart', () => ({ TimeChart: class {} }));

const MIB = 2 ** 20;

describe('the memory of the kernel', () => {
  it('updates use, free memory and peak together', () => {
    const kernel = sample('status').kernels[0];
    if (!kernel?.host.limit) {
      throw new Error('a kernel with a limit was wanted');
    }
    const { host } = kernel;
    const limit = { ...kernel.host.limit, bytes: 1024 * MIB };
    const moved = new Signal<GuardModel, void>({} as GuardModel);
    const at = (mebibytes: number): typeof kernel => ({
      ...kernel,
      host: {
        ...host,
        rss_bytes: mebibytes * MIB,
        details: [`resident ${mebibytes} MiB`, `peak ${mebibytes} MiB`],
        used_bytes: (mebibytes + 1) * MIB,
        limit
      }
    });
    const series = { end: null, times: [], values: [], version: 0 };
    const model = { isNearStop: false, kernel: at(500), marks: [], others: [], series, moved };
    const drawn = render(<HostMemory model={model as never} trans={trans} />);
    for (const mebibytes of [500, 700]) {
      model.kernel = at(mebibytes);
      act(() => moved.emit());
      const shown = drawn.node.querySelector('.jp-TfGuard-big')?.textContent;
      expect(shown).toBe(`${mebibytes + 1} MiB of 1.00 GiB`);
      expect(drawn.text).toContain(`${1023 - mebibytes} MiB free`);
      expect(drawn.text).toContain(`this kernel ${mebibytes} MiB · rest 1 MiB`);
      expect(drawn.node.querySelector('details:not([open])')?.textContent).toContain(
        `resident ${mebibytes} MiB · peak ${mebibytes} MiB`
      );
    }
  });
});
