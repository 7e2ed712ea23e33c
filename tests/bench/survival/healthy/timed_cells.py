# %% setup
import near_limit
import numpy as np  # noqa: F401

# %%
# %%time
blocks = near_limit.fill(0.95)
assert float(blocks[-1].sum()) == blocks[-1].size

# %%
# %timeit -n 20 -r 3 np.sqrt(blocks[0][:100_000]).sum()
assert near_limit.used() > 0.9 * near_limit.limit()
print("digest:", len(blocks) > 3)
