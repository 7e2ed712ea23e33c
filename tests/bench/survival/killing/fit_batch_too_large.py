# %% setup
import keras
import numpy as np

rng = np.random.default_rng(3)
x = rng.random((2_048, 64, 64, 3), dtype="float32")
y = rng.integers(0, 5, 2_048)
model = keras.Sequential(
    [
        keras.Input((64, 64, 3)),
        keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
        keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(5, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy")

# %%
model.fit(x, y, batch_size=2_048, epochs=1)

# %% retry
history = model.fit(x[:64], y[:64], batch_size=8, epochs=1, verbose=0)
assert np.isfinite(history.history["loss"][0])
