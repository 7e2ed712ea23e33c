# %% setup
import numpy as np


def load(number):
    return np.full((256, 1_024), number)


# %%
loaded, failed = [], []
for number in range(1_000_000):
    try:
        loaded.append(load(number))
    except Exception as error:
        failed.append(error)

# %% retry
loaded = [load(number) for number in range(10)]
assert len(loaded) == 10
