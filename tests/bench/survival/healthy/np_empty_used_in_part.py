# %% setup
import near_limit
import numpy as np

# %%
# A buffer for the worst case, of which the data needs a part.
buffer = np.empty((6_000, 125_000))
row = 0
# On disk, the buffer takes no room.
while row < len(buffer) and near_limit.room(0.93) > 4 * near_limit.MIB:
    buffer[row] = row
    row += 1
near_limit.hold()
assert buffer[row - 1].mean() == row - 1
print("digest:", float(buffer[:50].sum()))
