# %% setup
import near_limit
import numpy as np

data = np.full(near_limit.room(0.96) // 12, 1.5)

# %%
smaller = data.astype("float32")
near_limit.hold(0.2)
del data
assert smaller[0] == smaller[-1] == 1.5
print("digest:", float(smaller[:1_000].sum()))
