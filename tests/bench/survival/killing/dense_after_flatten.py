# %% setup
import keras
import numpy as np

x = np.random.default_rng(4).random((8, 224, 224, 3), dtype="float32")

# %%
model = keras.Sequential(
    [
        keras.Input((224, 224, 3)),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(1_024, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.predict(x)

# %% retry
model = keras.Sequential(
    [
        keras.Input((224, 224, 3)),
        keras.layers.Conv2D(32, 3, strides=4, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
assert model.predict(x, verbose=0).shape == (8, 10)
