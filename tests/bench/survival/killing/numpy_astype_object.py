# %% setup
import numpy as np

values = np.arange(60_000_000, dtype="int32")

# %%
as_objects = values.astype(object)

# %% retry
as_objects = values[:100_000].astype(object)
assert sum(as_objects) == 4_999_950_000
