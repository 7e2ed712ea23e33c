import { Signal } from '@lumino/signaling';
import * as React from 'react';
import { act } from 'react';
import { describe, expect, it } from 'vitest';

import { useRead } from '../parts/useRead';

import { render } from './render';

describe('useRead', () => {
  it('draws again where another thing is read, and only there', () => {
    const source = { text: '5.9 GiB' };
    const moved = new Signal<object, void>(source);
    let drawn = 0;
    function Text(): React.JSX.Element {
      const text = useRead(moved, () => source.text);
      drawn += 1;
      return <b>{text}</b>;
    }
    const panel = render(<Text />);
    act(() => moved.emit());
    expect([drawn, panel.text]).toEqual([1, '5.9 GiB']);
    source.text = '6.0 GiB';
    act(() => moved.emit());
    expect([drawn, panel.text]).toEqual([2, '6.0 GiB']);
  });
});
