# needs: sklearn
# %% setup
import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

rng = np.random.default_rng(0)
X, y = rng.random((150_000, 3), dtype=np.float32), rng.random(150_000)

# %%
forest = ExtraTreesRegressor(n_estimators=120, n_jobs=4, random_state=0, max_features=1).fit(X, y)

# %% retry
forest = ExtraTreesRegressor(n_estimators=4, n_jobs=4, random_state=0, max_depth=4).fit(X, y)
