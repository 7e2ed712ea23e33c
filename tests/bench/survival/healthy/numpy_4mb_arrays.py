# %% setup
import near_limit
import numpy as np

# %%
kept = near_limit.fill(0.94)
total = 0.0
for number in range(3_000):
    block = np.full(524_288, float(number % 7))
    total += float(block[::4_096].sum())
assert total > 0
print("digest:", total, len(kept) > 3)
