# %% setup
import copy

import numpy as np

state = {
    "weights": [np.zeros((1_000, 1_000)) for _ in range(20)],
    "log": [{"step": k, "loss": 1.0 / (k + 1)} for k in range(100_000)],
}

# %%
snapshots = []
for _epoch in range(50):
    snapshots.append(copy.deepcopy(state))

# %% retry
snapshots.clear()
snapshots.append(copy.deepcopy(state["weights"][0]))
assert snapshots[0].shape == (1_000, 1_000)
