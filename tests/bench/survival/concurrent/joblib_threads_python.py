# needs: joblib
# %% setup
from joblib import Parallel, delayed


def tokens(number):
    return [f"{number}-{k}" for k in range(60_000)]


# %%
documents = Parallel(n_jobs=4, prefer="threads")(delayed(tokens)(k) for k in range(2_000))

# %% retry
assert len(Parallel(n_jobs=4, prefer="threads")(delayed(tokens)(k) for k in range(4))) == 4
