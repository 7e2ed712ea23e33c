# %% setup
import near_limit
import numpy as np

# %%
array = np.ones(near_limit.room(0.96) // 8)
near_limit.hold()
assert array.sum() == array.size
print("digest:", float(array[:1_000].sum()))
