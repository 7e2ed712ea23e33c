# %% setup
from concurrent.futures import ThreadPoolExecutor

import numpy as np


def crop(number):
    image = np.random.default_rng(number).integers(0, 256, (512, 512, 3), dtype="uint8")
    return image[::-1].astype("float32") / 255.0


# %%
with ThreadPoolExecutor(4) as pool:
    images = list(pool.map(crop, range(5_000)))

# %% retry
with ThreadPoolExecutor(4) as pool:
    images = list(pool.map(crop, range(8)))
assert len(images) == 8
