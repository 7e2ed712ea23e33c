# %% setup
from multiprocessing.pool import ThreadPool


def parse(number):
    return [bytearray(b"x" * (1 << 20)) for _ in range(60)]


# %%
with ThreadPool(4) as pool:
    parts = pool.map(parse, range(60), chunksize=1)

# %% retry
with ThreadPool(4) as pool:
    assert pool.map(abs, [-1, -2]) == [1, 2]
