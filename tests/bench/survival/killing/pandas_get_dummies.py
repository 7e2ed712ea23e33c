# %% setup
import numpy as np
import pandas as pd

orders = pd.DataFrame({"customer": np.arange(60_000) % 40_000, "amount": np.ones(60_000)})
orders["customer"] = orders["customer"].astype(str)

# %%
table = pd.get_dummies(orders, columns=["customer"])

# %% retry
orders["group"] = orders["customer"].str[-2:]
table = pd.get_dummies(orders[["group", "amount"]], columns=["group"])
assert table.shape[0] == 60_000
