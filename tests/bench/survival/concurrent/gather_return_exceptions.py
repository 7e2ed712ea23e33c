# %% setup
import asyncio


async def load(number):
    rows = []
    for _ in range(300):
        rows.append(bytearray(b"x" * (3 << 20)))
        await asyncio.sleep(0.004)
    return len(rows)


# %%
counts = await asyncio.gather(*(load(k) for k in range(8)), return_exceptions=True)  # noqa: F704
while True:
    counts.append(bytearray(b"x" * (1 << 20)))

# %% retry
counts = await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2))  # noqa: F704
assert counts == [1, 2]
