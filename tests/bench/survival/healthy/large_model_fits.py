# %% setup
import keras
import near_limit
import numpy as np

keras.utils.set_random_seed(4)
x = np.ones((64, 512), dtype="float32")
y = np.ones((64, 1), dtype="float32")
small = keras.Sequential([keras.Input((512,)), keras.layers.Dense(8), keras.layers.Dense(1)])
small.compile("adam", "mse")
small.fit(x, y, verbose=0)

# %%
# Weights, gradient, two slots of the optimizer, and temporary results.
units = 8_000
model = keras.Sequential(
    [keras.Input((512,)), keras.layers.Dense(units, activation="relu"), keras.layers.Dense(1)]
)
model.compile("adam", "mse")
kept = near_limit.fill(0.94, spare=110 * near_limit.MIB)
losses = model.fit(x, y, epochs=5, verbose=0).history["loss"]
assert losses[-1] < losses[0]
print("digest:", f"{losses[-1]:.3e}", model.count_params(), len(kept) > 3)
