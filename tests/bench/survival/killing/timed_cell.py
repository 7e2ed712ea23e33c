# %% setup
import numpy as np

rng = np.random.default_rng(11)

# %%
# %%time
walks = []
for _walk in range(100_000):
    walks.append(np.cumsum(rng.normal(size=100_000)))

# %% retry
# %%time
walks = [np.cumsum(rng.normal(size=1_000)) for walk in range(10)]
assert len(walks) == 10
