# %% setup
import keras
import numpy as np

x = np.random.default_rng(15).random((2_048, 120, 16), dtype="float32")
y = np.random.default_rng(16).random((2_048, 1), dtype="float32")


def build(units, steps):
    model = keras.Sequential(
        [keras.Input((steps, 16)), keras.layers.LSTM(units, unroll=True), keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    return model


# %%
build(384, 120).fit(x, y, batch_size=2_048, epochs=1)

# %% retry
history = build(8, 10).fit(x[:64, :10], y[:64], batch_size=16, epochs=1, verbose=0)
assert np.isfinite(history.history["loss"][0])
