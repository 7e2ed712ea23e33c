# %% setup
import numpy as np
import pandas as pd

left = pd.DataFrame({"user": np.arange(20_000), "age": np.arange(20_000) % 80})
right = pd.DataFrame({"item": np.arange(10_000), "price": np.arange(10_000) / 7})

# %%
pairs = left.merge(right, how="cross")
pairs["score"] = pairs["age"] * pairs["price"]

# %% retry
pairs = left.head(500).merge(right.head(500), how="cross")
assert len(pairs) == 250_000
assert len(left) == 20_000
