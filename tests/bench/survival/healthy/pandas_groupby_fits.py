# %% setup
import near_limit
import numpy as np
import pandas as pd

# %%
rows = near_limit.room(0.92) // 47
frame = pd.DataFrame({"key": np.arange(rows) % 1_000, "x": 1.0, "y": 2.0})
means = frame.groupby("key")[["x", "y"]].mean()
assert len(means) == 1_000
print("digest:", float(means["x"].sum()), float(means["y"].sum()))
