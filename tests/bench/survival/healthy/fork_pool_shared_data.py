# %% setup
import multiprocessing

import near_limit
import numpy as np

data = np.ones((64, near_limit.room(0.92) // 64 // 8))


def total(row):
    return float(data[row, ::512].sum())


# %%
with multiprocessing.get_context("fork").Pool(2) as pool:
    totals = pool.map(total, range(64))
    near_limit.hold(0.2)
assert totals == [float(data[0, ::512].size)] * 64
print("digest:", len(totals))
