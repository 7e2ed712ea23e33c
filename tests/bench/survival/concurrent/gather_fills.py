# %% setup
import asyncio


async def load(number):
    rows = []
    for _ in range(200):
        rows.append(bytearray(b"x" * (2 << 20)))
        await asyncio.sleep(0.002)
    return rows


# %%
tables = await asyncio.gather(*(load(k) for k in range(6)))  # noqa: F704

# %% retry
done = await asyncio.gather(*(asyncio.sleep(0.01, k) for k in range(4)))  # noqa: F704
assert done == [0, 1, 2, 3]
