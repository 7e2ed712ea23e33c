# %% start
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

threads = ThreadPoolExecutor(2)
assert threads.submit(abs, -1).result() == 1

# %% after
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

if "threads" in globals():
    assert threads.submit(abs, -2).result(timeout=60) == 2
with ThreadPoolExecutor(2) as pool:
    assert list(pool.map(abs, [-1, -2])) == [1, 2]
with ProcessPoolExecutor(2) as pool:
    assert list(pool.map(abs, [-1, -2])) == [1, 2]
