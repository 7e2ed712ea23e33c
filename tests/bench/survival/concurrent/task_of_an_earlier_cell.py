# %% setup
import asyncio

history = []


async def poll():
    await asyncio.sleep(1.0)
    while True:
        history.append(bytearray(b"x" * (3 << 20)))
        await asyncio.sleep(0.01)


poller = asyncio.create_task(poll())

# %%
await asyncio.sleep(30)  # noqa: F704
raise MemoryError("the task was stopped")

# %% retry
history.clear()
await asyncio.sleep(0.3)  # noqa: F704
assert len(history) < 40
poller.cancel()
