# %% setup
from multiprocessing.pool import ThreadPool

pool = ThreadPool(3)


def parse(number):
    return bytearray(b"x" * (6 << 20))


# %%
kept = list(pool.imap(parse, range(1_000)))

# %% retry
kept = None
assert pool.map_async(abs, [-1, -2]).get(30) == [1, 2]
