# %% setup
import numpy as np

samples = np.zeros((0, 10_000))

# %%
while True:
    samples = np.append(samples, np.random.random((500, 10_000)), axis=0)

# %% retry
samples = np.append(samples[:100], np.ones((10, 10_000)), axis=0)
assert samples[-1].sum() == 10_000
