# %% setup
import asyncio

import numpy as np


async def download(number):
    await asyncio.sleep(0)
    return np.random.default_rng(number).random(500_000)


# %%
pages = []
while True:
    pages += await asyncio.gather(*(download(len(pages) + k) for k in range(8)))  # noqa: F704

# %% retry
pages = await asyncio.gather(*(download(k) for k in range(4)))  # noqa: F704
assert len(pages) == 4
