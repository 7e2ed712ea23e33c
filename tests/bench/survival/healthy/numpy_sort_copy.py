# %% setup
import near_limit
import numpy as np

data = np.arange(near_limit.room(0.95) // 16, dtype="int64")[::-1]

# %%
ordered = np.sort(data)
assert ordered[0] == 0
assert ordered[-1] == ordered.size - 1
print("digest:", int(ordered[:1_000].sum()))
