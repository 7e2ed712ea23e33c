# %% setup
import numpy as np
import pandas as pd

history = pd.DataFrame({f"x{i}": np.zeros(1_000) for i in range(20)})

# %%
everything = history
day = 0
while True:
    day += 1
    everything = pd.concat([everything, everything.head(200_000), history + day])

# %% retry
del everything
everything = pd.concat([history + day for day in range(10)])
assert len(everything) == 10_000
