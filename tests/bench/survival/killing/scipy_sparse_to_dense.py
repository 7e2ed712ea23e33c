# needs: scipy
# %% setup
import numpy as np
import scipy.sparse

rng = np.random.default_rng(1)
places = rng.integers(0, 30_000, (2, 12_000))
matrix = scipy.sparse.csr_matrix((np.ones(12_000), places), shape=(40_000, 30_000))

# %%
dense = matrix.toarray() + matrix.todense()

# %% retry
dense = matrix[:100].toarray()
assert dense.shape == (100, 30_000)
