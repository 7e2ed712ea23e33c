# %% setup
import near_limit
import numpy as np

# %%
kept = near_limit.fill(0.94)
total = 0.0
for number in range(200_000):
    total += float(np.full(100, number % 5).sum())
assert total == sum(100 * (n % 5) for n in range(200_000))
print("digest:", total, len(kept) > 3)
