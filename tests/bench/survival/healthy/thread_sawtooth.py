# %% setup
from concurrent.futures import ThreadPoolExecutor

import near_limit
import numpy as np


def work(number):
    block = np.full(2 * near_limit.MIB, float(number))
    return float(block[:1_000].sum())


# %%
kept = near_limit.fill(0.95, spare=4 * 16 * near_limit.MIB)
with ThreadPoolExecutor(4) as pool:
    totals = list(pool.map(work, range(400)))
assert totals == [1_000.0 * number for number in range(400)]
print("digest:", sum(totals), len(kept) > 3)
