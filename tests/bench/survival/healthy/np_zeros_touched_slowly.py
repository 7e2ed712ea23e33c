# %% setup
import near_limit
import numpy as np

# %%
# 12 GB are reserved, and touched row by row up to a plateau. The number of rows is known before: file cache does not count in
# room(), and blocks that the guard placed on disk are file cache.
matrix = np.zeros((1_500, 1_000_000))
rows = near_limit.room(0.955) // matrix[0].nbytes - 1
for row in range(rows):
    matrix[row] = row
near_limit.hold()
assert matrix[rows - 1, -1] == rows - 1
assert matrix[rows, 0] == 0.0
print("digest:", float(matrix[:20].sum()))
