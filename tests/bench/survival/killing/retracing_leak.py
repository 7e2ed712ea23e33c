# %% setup
import numpy as np
import tensorflow as tf

table = np.random.default_rng(17).random((400, 2_000)).astype("float32")


@tf.function
def score(x, shift):
    # A Python number as argument: every value is another graph, and the table is a constant of each.
    return tf.reduce_sum(x @ tf.constant(table) + shift)


x = tf.ones((4, 400))

# %%
for step in range(100_000):
    score(x, float(step))

# %% retry
del score


@tf.function
def score(x, shift):
    return tf.reduce_sum(x) + shift


assert float(score(x, tf.constant(2.0))) == 1_602.0
