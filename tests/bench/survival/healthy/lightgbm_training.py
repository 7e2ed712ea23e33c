# needs: lightgbm
# %% setup
import lightgbm
import near_limit
import numpy as np

rng = np.random.default_rng(8)
x = rng.random((100_000, 20))
y = x[:, 0] * 2 + x[:, 1]

# %%
kept = near_limit.fill(0.94, spare=40 * near_limit.MIB)
booster = lightgbm.train(
    {"objective": "l2", "num_threads": 2, "verbose": -1, "deterministic": True, "seed": 1},
    lightgbm.Dataset(x, y),
    20,
)
error = float(np.abs(booster.predict(x) - y).mean())
assert error < 0.4
print("digest:", round(error, 3), len(kept) > 3)
