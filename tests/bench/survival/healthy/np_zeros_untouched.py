# %% setup
import near_limit
import numpy as np

# %%
# 12 GB of virtual memory, of which a little is used.
sparse = [np.zeros((50_000, 10_000)) for _ in range(3)]
for matrix in sparse:
    matrix[::5_000, ::1_000] = 1.0
blocks = near_limit.fill(0.93)
near_limit.hold()
total = sum(float(matrix[::5_000, ::1_000].sum()) for matrix in sparse)
assert total == 300.0
print("digest:", total)
