# %% setup
import keras
import numpy as np
import tensorflow as tf

model = keras.Sequential(
    [keras.Input((512,)), keras.layers.Dense(1_024, activation="relu"), keras.layers.Dense(10)]
)
x = np.random.default_rng(18).random((64, 512), dtype="float32")


def gradients():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    return tape.gradient(loss, model.trainable_variables)


# %%
history = []
for _step in range(100_000):
    history.append(gradients())

# %% retry
history.clear()
assert len(gradients()) == 4
