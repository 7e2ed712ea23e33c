# %% setup
import near_limit
import numpy as np

# %%
# The two halves and the whole exist at the same time for a moment.
half = near_limit.room(0.94) // 4 // 8
first, second = np.ones(half), np.full(half, 2.0)
both = np.concatenate([first, second])
del first, second
assert both.sum() == 3 * half
print("digest:", float(both[:10].sum() + both[-10:].sum()))
