# %% setup
import pickle

import numpy as np

models = {f"fold {k}": np.random.default_rng(k).random(9_000_000) for k in range(12)}

# %%
blob = pickle.dumps({"models": models, "copy": {k: v.tolist() for k, v in models.items()}})

# %% retry
with open("fold.pickle", "wb") as file:
    pickle.dump(models["fold 0"], file, protocol=5)
with open("fold.pickle", "rb") as file:
    assert pickle.load(file).shape == (9_000_000,)
