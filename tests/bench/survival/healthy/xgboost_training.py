# needs: xgboost
# %% setup
import near_limit
import numpy as np
import xgboost

rng = np.random.default_rng(7)
x = rng.random((100_000, 20), dtype="float32")
y = x[:, 0] * 2 + x[:, 1]

# %%
kept = near_limit.fill(0.94, spare=100 * near_limit.MIB)
data = xgboost.DMatrix(x, label=y)
booster = xgboost.train({"max_depth": 5, "nthread": 2, "seed": 1}, data, num_boost_round=20)
error = float(np.abs(booster.predict(data) - y).mean())
assert error < 0.2
print("digest:", round(error, 3), len(kept) > 3)
