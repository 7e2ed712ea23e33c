# %% setup
import math
import multiprocessing

import near_limit

# %%
# Two new interpreters beside the data.
kept = near_limit.fill(0.90, spare=40 * near_limit.MIB)
with multiprocessing.get_context("spawn").Pool(2) as pool:
    roots = pool.map(math.isqrt, range(0, 100_000, 1_000))
assert roots[-1] == 314
print("digest:", sum(roots), len(kept) > 3)
