# %% setup
import keras
import numpy as np
import tensorflow as tf

seen = []


def augment(number):
    image = np.full((96, 96, 3), int(number) % 7, "float32")
    seen.append(image * 2)
    return image


data = (
    tf.data.Dataset.range(1_000_000)
    .map(lambda n: tf.numpy_function(augment, [n], tf.float32), num_parallel_calls=4)
    .map(lambda image: (tf.ensure_shape(image, (96, 96, 3)), 0.0))
    .batch(16)
)
model = keras.Sequential(
    [keras.Input((96, 96, 3)), keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(1)]
)
model.compile("sgd", "mse")

# %%
model.fit(data, verbose=0)

# %% retry
seen.clear()
model.fit(data.take(2), verbose=0)
