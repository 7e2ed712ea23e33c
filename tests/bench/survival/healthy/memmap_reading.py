# %% setup
import near_limit
import numpy as np

table = np.memmap("table.bin", dtype="float32", mode="w+", shape=(300, 1_000_000))
for row in range(300):
    table[row] = row
table.flush()
del table

# %%
kept = near_limit.fill(0.88)
table = np.memmap("table.bin", dtype="float32", mode="r", shape=(300, 1_000_000))
total = 0.0
for _ in range(2):
    for row in range(300):
        total += float(table[row].mean())
assert total == 2 * sum(range(300))
print("digest:", total, len(kept) > 3)
