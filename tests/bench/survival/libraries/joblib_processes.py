# needs: joblib
# %% start
from joblib import Parallel, delayed

assert Parallel(n_jobs=2)(delayed(abs)(-k) for k in range(4)) == [0, 1, 2, 3]

# %% after
from joblib import Parallel, delayed

assert Parallel(n_jobs=2)(delayed(abs)(-k) for k in range(6)) == [0, 1, 2, 3, 4, 5]
