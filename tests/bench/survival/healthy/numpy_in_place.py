# %% setup
import near_limit
import numpy as np

data = np.ones(near_limit.room(0.95) // 8)

# %%
for _ in range(8):
    data *= 2.0
    data -= 1.0
assert data[0] == data[-1] == 1.0
print("digest:", float(data[:1_000].sum()))
