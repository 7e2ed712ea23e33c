# %% setup
import keras
import near_limit
import numpy as np

keras.utils.set_random_seed(1)
x = np.random.default_rng(1).random((2_000, 32), dtype="float32")
y = x.sum(axis=1, keepdims=True)
model = keras.Sequential(
    [keras.Input((32,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)]
)
model.compile("adam", "mse")
model.train_on_batch(x[:32], y[:32])

# %%
data = near_limit.fill(0.93)
history = model.fit(x, y, batch_size=32, epochs=3, verbose=0)
losses = history.history["loss"]
assert losses[-1] < losses[0]
print("digest:", f"{losses[-1]:.3e}", len(data) > 5)
