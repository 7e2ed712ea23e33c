# %% setup
import multiprocessing

import numpy as np


def features(number):
    return np.random.default_rng(number).random((128, 8_192))


# %%
rows = []
with multiprocessing.get_context("fork").Pool(2) as pool:
    for row in pool.imap_unordered(features, range(2_000)):
        rows.append(row)

# %% retry
rows = None
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert [row.shape for row in pool.imap(features, range(3))] == [(128, 8_192)] * 3
