# %% setup
import functools

import numpy as np


@functools.cache
def kernel_row(index, width):
    return np.exp(-((np.arange(200_000) - index) ** 2) / width)


# %%
total = 0.0
for width in (1.0, 10.0, 100.0):
    for index in range(100_000):
        total += kernel_row(index, width)[0]

# %% retry
kernel_row.cache_clear()
assert kernel_row(0, 1.0)[0] == 1.0
