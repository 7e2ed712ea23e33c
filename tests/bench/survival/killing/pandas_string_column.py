# %% setup
import numpy as np
import pandas as pd

frame = pd.DataFrame({"id": np.arange(15_000_000)})

# %%
frame["name"] = frame["id"].map(lambda i: f"customer-{i:012d}-of-the-shop")
frame["upper"] = frame["name"].str.upper()

# %% retry
part = frame.head(10_000)[["id"]].copy()
part["name"] = part["id"].map(lambda i: f"customer-{i}")
assert part["name"].iloc[-1] == "customer-9999"
