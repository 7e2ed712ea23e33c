# %% setup
import keras
import numpy as np

x = np.random.default_rng(19).random((64, 1_000), dtype="float32")
y = x.sum(axis=1, keepdims=True)


def build(units):
    model = keras.Sequential(
        [keras.Input((1_000,)), keras.layers.Dense(units, activation="relu"), keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    return model


# %%
# A search over layer sizes that keeps every trained model.
tried = {}
for trial in range(200):
    model = build(7_000 + 10 * trial)
    loss = model.fit(x, y, batch_size=32, epochs=1, verbose=0).history["loss"][0]
    tried[trial] = (loss, model)

# %% retry
tried.clear()
model = build(16)
assert np.isfinite(model.fit(x, y, epochs=1, verbose=0).history["loss"][0])
