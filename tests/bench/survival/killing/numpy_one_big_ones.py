# %% setup
import numpy as np

kept = np.arange(1_000_000)

# %%
weights = np.ones((20_000, 20_000))

# %% retry
weights = np.ones((2_000, 2_000))
assert weights.sum() == 4_000_000
assert kept.sum() == 499_999_500_000
