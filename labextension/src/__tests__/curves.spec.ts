import { describe, expect, it } from 'vitest';

import { KernelCurves } from '../curves';

describe('KernelCurves', () => {
  it('keeps each mark once, and drops those that no line reaches back to', () => {
    const curves = new KernelCurves();
    curves.push(1000, 1, false);
    curves.addMarks([{ time: 990, label: '[1]' }]);
    curves.addMarks([
      { time: 990, label: '[1]' },
      { time: 995, label: '[2]' }
    ]);
    expect(curves.marks.map(({ label }) => label)).toEqual(['[1]', '[2]']);
    curves.push(1593, 1, false);
    curves.addMarks([{ time: 1590, label: '[3]' }]);
    expect(curves.marks.map(({ label }) => label)).toEqual(['[2]', '[3]']);
  });

  it('breaks the line where another process took the place of the old one', () => {
    const curves = new KernelCurves();
    curves.push(10, 5, true);
    curves.push(12, 7, true);
    expect(curves.series.times).toEqual([10, 11, 12]);
    expect(curves.series.values).toEqual([5, null, 7]);
  });
});
