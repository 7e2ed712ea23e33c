# %% setup
import pickle

import near_limit
import numpy as np

# %%
# The array, its bytes, and for a moment a second array.
size = near_limit.room(0.93) // 3 // 8
array = np.arange(size, dtype="float64")
text = pickle.dumps(array, protocol=5)
again = pickle.loads(text)
near_limit.hold(0.2)
assert again[-1] == size - 1
print("digest:", float(again[:1_000].sum()))
