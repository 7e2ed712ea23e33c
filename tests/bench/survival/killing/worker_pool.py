# %% setup
import multiprocessing

import numpy as np


def features(number):
    return np.random.default_rng(number).random((512, 1_024))


# %%
with multiprocessing.get_context("fork").Pool(2) as pool:
    table = np.stack(pool.map(features, range(2_000), chunksize=20))

# %% retry
with multiprocessing.get_context("fork").Pool(2) as pool:
    table = np.stack(pool.map(features, range(4)))
assert table.shape == (4, 512, 1_024)
