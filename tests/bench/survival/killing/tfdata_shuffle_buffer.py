# %% setup
import tensorflow as tf


def images():
    return tf.data.Dataset.range(20_000).map(
        lambda i: tf.random.stateless_uniform((128, 128, 3), seed=[i, i])
    )


# %%
for batch in images().shuffle(20_000).batch(32).take(3):
    print(batch.shape)

# %% retry
shapes = [batch.shape for batch in images().shuffle(200).batch(32).take(3)]
assert len(shapes) == 3
