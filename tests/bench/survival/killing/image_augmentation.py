# %% setup
import numpy as np

rng = np.random.default_rng(12)
photos = rng.integers(0, 256, (800, 160, 160, 3), dtype="uint8")

# %%
augmented = []
for _round in range(10):
    for photo in photos:
        turned = np.rot90(photo, rng.integers(4)).astype("float32") / 255.0
        augmented.append(np.clip(turned + rng.normal(0, 0.05, turned.shape), 0, 1))
training = np.array(augmented)

# %% retry
augmented.clear()
one = np.rot90(photos[0]).astype("float32") / 255.0
assert one.shape == (160, 160, 3)
