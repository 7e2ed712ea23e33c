# %% setup
from concurrent.futures import ThreadPoolExecutor, as_completed


def parse(number):
    return [bytearray(b"x" * (1 << 20)) for _ in range(50)]


# %%
with ThreadPoolExecutor(4) as pool:
    parts = [one.result() for one in as_completed([pool.submit(parse, k) for k in range(80)])]

# %% retry
with ThreadPoolExecutor(4) as pool:
    assert list(pool.map(abs, [-1, -2])) == [1, 2]
