# %% start
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

thread_executor = ThreadPoolExecutor(2)
assert thread_executor.submit(abs, -1).result() == 1

# %% after
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

if "thread_executor" in globals():
    assert thread_executor.submit(abs, -2).result(timeout=60) == 2
with ThreadPoolExecutor(2) as pool:
    assert list(pool.map(abs, [-1, -2])) == [1, 2]
with ProcessPoolExecutor(2) as pool:
    assert list(pool.map(abs, [-1, -2])) == [1, 2]
