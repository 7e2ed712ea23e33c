# %% start
import multiprocessing
from multiprocessing.pool import ThreadPool

with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(abs, [-1, -2]) == [1, 2]

# %% after
import multiprocessing
from multiprocessing.pool import ThreadPool

with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map_async(abs, [-1, -2]).get(60) == [1, 2]
with ThreadPool(2) as pool:
    assert pool.map_async(abs, [-1, -2]).get(60) == [1, 2]
