// @vitest-environment node
import { createRequire } from 'node:module';

import { describe, expect, it } from 'vitest';

const shortNames = createRequire(import.meta.url)('../../scripts/shortNames.cjs') as (
  source: string
) => string;

describe('shortNames', () => {
  it('shortens a private member to one name wherever it stands', () => {
    const [first, second] = ['a._chart = 1;', 'b._chart();'].map(shortNames);
    const name = /^a\.(\w{1,2}) = 1;/.exec(first ?? '')?.[1];
    expect(name).toBeDefined();
    expect(second).toContain(`b.${name}();`);
  });

  it("leaves what others have named: plurals and contexts of JupyterLab's translations", () => {
    for (const call of ['t.__("x");', 't._n("x", "xs", 2);', 't._p("c", "x");', 't._np("c");']) {
      expect(shortNames(call)).toContain(call);
    }
  });
});
