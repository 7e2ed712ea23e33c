# %% setup
from concurrent.futures import ThreadPoolExecutor
from threading import Event

results = []
finished = Event()


def expand(depth):
    return [bytearray(b"x" * (256 << 10)) for _ in range(8)]


# %%
pool = ThreadPoolExecutor(4)


def again(future):
    results.append(future.result())
    pool.submit(expand, len(results)).add_done_callback(again)


for k in range(4):
    pool.submit(expand, k).add_done_callback(again)
finished.wait(60)

# %% retry
results.clear()
assert pool.submit(abs, -3).result(timeout=30) == 3
