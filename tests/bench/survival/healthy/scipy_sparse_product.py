# needs: scipy
# %% setup
import near_limit
import numpy as np
import scipy.sparse

rng = np.random.default_rng(1)
places = rng.integers(0, 50_000, (2, 250_000))
matrix = scipy.sparse.csr_matrix((np.ones(250_000), places), shape=(50_000, 50_000))

# %%
kept = near_limit.fill(0.94, spare=40 * near_limit.MIB)
product = matrix @ matrix.T
assert product.shape == (50_000, 50_000)
print("digest:", product.nnz, len(kept) > 3)
