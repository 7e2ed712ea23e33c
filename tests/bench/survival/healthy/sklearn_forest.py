# needs: sklearn
# %% setup
import near_limit
import numpy as np
from sklearn.ensemble import RandomForestRegressor

rng = np.random.default_rng(9)
x = rng.random((20_000, 10))
y = x[:, 0] + x[:, 1]

# %%
kept = near_limit.fill(0.94, spare=60 * near_limit.MIB)
forest = RandomForestRegressor(n_estimators=15, n_jobs=2, random_state=1).fit(x, y)
error = float(np.abs(forest.predict(x) - y).mean())
assert error < 0.05
print("digest:", round(error, 6), len(kept) > 3)
