# %% setup
import numpy as np
import pandas as pd

frame = pd.DataFrame({"n": np.arange(20_000)})

# %%
wide = frame.apply(lambda row: pd.Series(np.ones(40_000) * row["n"]), axis=1)

# %% retry
wide = frame.head(50).apply(lambda row: pd.Series(np.ones(10) * row["n"]), axis=1)
assert wide.shape == (50, 10)
