# %% setup
from concurrent.futures import ProcessPoolExecutor


def render(number):
    return bytes(8 << 20)


# %%
with ProcessPoolExecutor(2) as pool:
    images = list(pool.map(render, range(400)))

# %% retry
with ProcessPoolExecutor(2) as pool:
    assert list(pool.map(abs, [-1, -2])) == [1, 2]
