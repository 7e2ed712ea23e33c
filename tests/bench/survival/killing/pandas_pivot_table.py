# %% setup
import numpy as np
import pandas as pd

rng = np.random.default_rng(7)
ratings = pd.DataFrame(
    {
        "user": rng.permutation(40_000).repeat(2),
        "item": rng.permutation(80_000) % 25_000,
        "stars": rng.integers(1, 6, 80_000).astype("float64"),
    }
).drop_duplicates(["user", "item"])

# %%
matrix = ratings.set_index(["user", "item"])["stars"].unstack()
matrix = matrix.fillna(0.0)

# %% retry
small = ratings[(ratings["user"] < 500)]
matrix = small.set_index(["user", "item"])["stars"].unstack()
assert matrix.shape[0] == 500
