# %% setup
import near_limit
import numpy as np

count = near_limit.room(0.955) // (5 * 64 * 64 * 3)
images = np.ones((count, 64, 64, 3), dtype="uint8")

# %%
x = images.astype("float32")
x /= 255.0
near_limit.hold(0.2)
assert x.shape == images.shape
print("digest:", round(float(x[:10].sum()), 3))
