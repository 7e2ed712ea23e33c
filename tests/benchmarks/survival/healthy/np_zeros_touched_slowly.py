# %% setup
import near_limit
import numpy as np

# %%
# 12 GB are reserved, and touched row by row up to a plateau.
matrix = np.zeros((1_500, 1_000_000))
row = 0
while near_limit.room(0.955) > 8 * near_limit.MIB:
    matrix[row] = row
    row += 1
near_limit.hold()
assert matrix[row - 1, -1] == row - 1
assert matrix[row, 0] == 0.0
print("digest:", float(matrix[:20].sum()))
