# %% setup
import numpy as np

axis = np.linspace(0.0, 1.0, 600)

# %%
x, y, z = np.meshgrid(axis, axis, axis)
field = np.sin(x) * np.cos(y) * z

# %% retry
x, y, z = np.meshgrid(axis[:50], axis[:50], axis[:50], sparse=True)
assert (np.sin(x) * np.cos(y) * z).shape == (50, 50, 50)
