# %% setup
import asyncio


def parse(number):
    return [bytearray(b"x" * (1 << 20)) for _ in range(60)]


# %%
files = await asyncio.gather(*(asyncio.to_thread(parse, k) for k in range(60)))  # noqa: F704

# %% retry
files = await asyncio.gather(*(asyncio.to_thread(len, "abc") for _ in range(4)))  # noqa: F704
assert files == [3, 3, 3, 3]
