# %% setup
import asyncio


async def load(number):
    rows = []
    for _ in range(400):
        rows.append(bytearray(b"x" * (2 << 20)))
        await asyncio.sleep(0.003)


# %%
async with asyncio.TaskGroup() as group:
    for k in range(5):
        group.create_task(load(k))

# %% retry
async with asyncio.TaskGroup() as group:
    task = group.create_task(asyncio.sleep(0.01, "ok"))
assert task.result() == "ok"
block = bytearray(b"x" * (256 << 20))
del block
