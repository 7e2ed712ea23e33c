# %% setup
from concurrent.futures import ThreadPoolExecutor

import near_limit
import numpy as np


def work(number):
    part = np.full(near_limit.MIB, float(number))
    return part, float(part.sum())


# %%
count = near_limit.room(0.95) // (8 * near_limit.MIB)
with ThreadPoolExecutor(4) as pool:
    parts = list(pool.map(work, range(count)))
near_limit.hold()
assert all(total == number * near_limit.MIB for number, (_, total) in enumerate(parts))
print("digest:", sum(total for _, total in parts[:50]))
