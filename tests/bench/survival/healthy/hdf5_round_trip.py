# needs: h5py
# %% setup
import h5py
import near_limit
import numpy as np

# %%
data = np.ones((near_limit.room(0.90) // 8_000, 1_000))
with h5py.File("data.h5", "w") as file:
    file.create_dataset("x", data=data[:40_000], chunks=(1_000, 1_000))
with h5py.File("data.h5", "r") as file:
    means = [float(file["x"][start : start + 1_000].mean()) for start in range(0, 40_000, 1_000)]
assert means == [1.0] * 40
print("digest:", len(means), data.shape[0] > 40_000)
