# %% setup
import keras
import numpy as np

tokens = np.random.default_rng(22).integers(0, 1_000, (256, 20))
labels = np.random.default_rng(23).integers(0, 2, 256)


def build(words, width):
    model = keras.Sequential(
        [
            keras.Input((20,), dtype="int32"),
            keras.layers.Embedding(words, width),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile("adam", "binary_crossentropy")
    return model


# %%
# 600 MB of weights; the optimizer needs twice as much again.
model = build(1_000_000, 150)
model.fit(tokens, labels, epochs=1)

# %% retry
model = build(1_000, 16)
history = model.fit(tokens, labels, epochs=1, verbose=0)
assert np.isfinite(history.history["loss"][0])
