# %% setup
import numpy as np


def describe(value):
    return f"{value:.6f} is the value of this sample"


describe_all = np.vectorize(describe, otypes=[object])
values = np.random.default_rng(9).random(30_000_000)

# %%
texts = describe_all(values)

# %% retry
texts = describe_all(values[:1_000])
assert texts.shape == (1_000,)
