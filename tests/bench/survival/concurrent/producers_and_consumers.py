# %% setup
import asyncio

kept = []


async def produce(waiting):
    while True:
        await waiting.put(bytearray(b"x" * (3 << 20)))


async def consume(waiting):
    while True:
        kept.append(await waiting.get())
        await asyncio.sleep(0.004)


# %%
waiting = asyncio.Queue(6)
tasks = [asyncio.create_task(produce(waiting)) for _ in range(2)]
tasks += [asyncio.create_task(consume(waiting)) for _ in range(3)]
await asyncio.sleep(60)  # noqa: F704

# %% retry
kept.clear()
await asyncio.wait_for(asyncio.Queue(1).put(1), 5)  # noqa: F704
