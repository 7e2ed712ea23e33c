# %% setup
import numpy as np

points = np.random.default_rng(1).normal(size=(9_000, 3))

# %%
difference = points[:, None, :] - points[None, :, :]
distances = np.sqrt((difference**2).sum(axis=-1))

# %% retry
few = points[:1_000]
distances = np.sqrt(((few[:, None, :] - few[None, :, :]) ** 2).sum(axis=-1))
assert distances.shape == (1_000, 1_000)
assert not distances.diagonal().any()
