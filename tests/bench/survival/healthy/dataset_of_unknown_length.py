# %% setup
import keras
import near_limit
import numpy as np
import tensorflow as tf


def rows():
    for number in range(640):
        yield np.full(100, number % 7, "f4"), np.ones(1, "f4")


spec = (tf.TensorSpec(100), tf.TensorSpec(1))
data = tf.data.Dataset.from_generator(rows, output_signature=spec).batch(32)
keras.utils.set_random_seed(1)
model = keras.Sequential(
    [keras.layers.Input((100,)), keras.layers.Dense(16), keras.layers.Dense(1)]
)
model.compile("adam", "mse")
model.fit(data, verbose=0)

# %%
# The end of the data is an error within a function; the next epoch runs the function again.
held = near_limit.fill(0.93)
history = model.fit(data, epochs=5, verbose=0)
print("digest:", [round(loss, 5) for loss in history.history["loss"]])
