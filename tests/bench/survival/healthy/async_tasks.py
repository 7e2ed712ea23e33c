# %% setup
import asyncio

import near_limit
import numpy as np


async def load(number):
    await asyncio.sleep(0.001 * (number % 5))
    return np.full(near_limit.MIB, number % 256, dtype="uint8")


# %%
pages = await asyncio.gather(*(load(k) for k in range(near_limit.room(0.93) // near_limit.MIB)))  # noqa: F704
await asyncio.sleep(0.3)  # noqa: F704
assert all(page[0] == number % 256 for number, page in enumerate(pages))
print("digest:", sum(int(page[-1]) for page in pages[:500]))
