# %% setup
from concurrent.futures import ThreadPoolExecutor

import numpy as np


def block(number):
    return np.random.default_rng(number).random(1_500_000)


# %%
with ThreadPoolExecutor(8) as pool:
    table = np.concatenate(list(pool.map(block, range(400))))

# %% retry
with ThreadPoolExecutor(8) as pool:
    assert len(np.concatenate(list(pool.map(block, range(3))))) == 4_500_000
