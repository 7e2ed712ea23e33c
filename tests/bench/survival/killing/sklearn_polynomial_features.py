# needs: sklearn
# %% setup
import numpy as np
from sklearn.preprocessing import PolynomialFeatures

x = np.random.default_rng(25).random((3_000, 60))

# %%
terms = PolynomialFeatures(degree=4).fit_transform(x)

# %% retry
terms = PolynomialFeatures(degree=2).fit_transform(x)
assert terms.shape == (3_000, 1_891)
