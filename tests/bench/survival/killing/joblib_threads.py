# needs: joblib
# %% setup
import joblib
import numpy as np


def bootstrap(seed):
    rng = np.random.default_rng(seed)
    return rng.choice(np.arange(500_000), 500_000)


# %%
samples = joblib.Parallel(n_jobs=2, prefer="threads")(
    joblib.delayed(bootstrap)(seed) for seed in range(5_000)
)

# %% retry
samples = joblib.Parallel(n_jobs=2, prefer="threads")(
    joblib.delayed(bootstrap)(seed) for seed in range(4)
)
assert len(samples) == 4
