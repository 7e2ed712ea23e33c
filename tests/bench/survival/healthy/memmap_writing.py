# %% setup
import near_limit
import numpy as np

# %%
# Every page is dirty for a while; the system writes them out.
kept = near_limit.fill(0.86)
table = np.memmap("out.bin", dtype="float32", mode="w+", shape=(150, 1_000_000))
for row in range(150):
    table[row] = row
assert table[149, -1] == 149
print("digest:", float(table[:, 0].sum()), len(kept) > 3)
