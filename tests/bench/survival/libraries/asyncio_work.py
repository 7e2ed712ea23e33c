# %% start
import asyncio

loop = asyncio.get_running_loop()
ticks = []


def tick():
    ticks.append(1)


# %% after
import asyncio

assert await asyncio.wait_for(asyncio.to_thread(abs, -1), 60) == 1  # noqa: F704
assert await asyncio.gather(asyncio.sleep(0.01, 1), asyncio.sleep(0.02, 2)) == [1, 2]  # noqa: F704
process = await asyncio.create_subprocess_exec("true")  # noqa: F704
assert await asyncio.wait_for(process.wait(), 60) == 0  # noqa: F704
