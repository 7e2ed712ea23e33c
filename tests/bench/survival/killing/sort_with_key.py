# %% setup
import numpy as np

ids = list(range(3_000_000))


def key(number):
    # The sort keeps every key until it is done: 800 bytes each.
    return tuple(float(number * k % 101) for k in range(20))


# %%
ids.sort(key=key)

# %% retry
few = sorted(range(1_000), key=lambda number: -number)
assert few[0] == 999
assert np.isfinite(key(5)).all()
