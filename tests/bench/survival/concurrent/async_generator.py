# %% setup
import asyncio


async def batches():
    number = 0
    while True:
        await asyncio.sleep(0.001)
        number += 1
        yield {"number": number, "block": bytearray(b"x" * (1 << 20))}


async def collect():
    return [batch async for batch in batches()]


# %%
first, second = await asyncio.gather(collect(), collect())  # noqa: F704

# %% retry
async for batch in batches():
    if batch["number"] == 5:
        break
