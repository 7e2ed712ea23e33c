# needs: nest_asyncio
# %% setup
import asyncio

import nest_asyncio

nest_asyncio.apply()


async def page(number):
    await asyncio.sleep(0.001)
    return bytearray(b"x" * (2 << 20))


# %%
pages = []
while True:
    pages += asyncio.run(asyncio.wait_for(asyncio.gather(*(page(k) for k in range(10))), 60))

# %% retry
pages = None
assert len(asyncio.run(page(1))) == 2 << 20
