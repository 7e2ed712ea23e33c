# %% setup
import keras
import numpy as np

rng = np.random.default_rng(0)
images = rng.integers(0, 256, (6_000, 96, 96, 3), dtype="uint8")
labels = rng.integers(0, 10, 6_000)

# %%
x = images.astype("float64") / 255.0
model = keras.Sequential(
    [
        keras.Input((96, 96, 3)),
        keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(x, labels, batch_size=64, epochs=1)

# %% retry
x = images[:500].astype("float32") / 255.0
model = keras.Sequential(
    [
        keras.Input((96, 96, 3)),
        keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(x, labels[:500], batch_size=32, epochs=1, verbose=0)
assert images.shape == (6_000, 96, 96, 3)
