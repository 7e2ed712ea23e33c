# %% setup
from concurrent.futures import ThreadPoolExecutor

pool = ThreadPoolExecutor(3)
assert pool.submit(abs, -1).result() == 1


def simulate(number):
    return [bytearray(b"x" * (512 << 10)) for _ in range(100)]


# %%
futures = [pool.submit(simulate, k) for k in range(100)]
results = [one.result() for one in futures]

# %% retry
futures = results = None
assert [one.result(timeout=30) for one in [pool.submit(abs, -k) for k in range(5)]] == list(
    range(5)
)
