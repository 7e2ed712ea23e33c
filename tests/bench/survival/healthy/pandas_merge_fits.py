# %% setup
import near_limit
import numpy as np
import pandas as pd

left = pd.DataFrame({"id": np.arange(1_000_000), "x": 1.0})
right = pd.DataFrame({"id": np.arange(1_000_000)[::-1], "y": 2.0})

# %%
kept = near_limit.fill(0.95, spare=150 * near_limit.MIB)
both = left.merge(right, on="id")
assert len(both) == 1_000_000
print("digest:", float(both["x"].sum() + both["y"].sum()), len(kept) > 3)
