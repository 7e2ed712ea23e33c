# %% setup
from concurrent.futures import ThreadPoolExecutor

import numpy as np

base = np.random.default_rng(1).random(1_000_000)
kept = []


def resample(seed):
    kept.append(np.sort(np.random.default_rng(seed).choice(base, len(base))))


# %%
with ThreadPoolExecutor(6) as pool:
    list(pool.map(resample, range(5_000)))

# %% retry
kept.clear()
with ThreadPoolExecutor(6) as pool:
    list(pool.map(resample, range(6)))
assert len(kept) == 6
