# %% setup
import tensorflow as tf

volumes = tf.data.Dataset.range(10_000).map(
    lambda i: tf.random.stateless_uniform((64, 64, 64), seed=[i, 2])
)

# %%
# 512 MiB a batch, and eight of them in front of a slow consumer.
for batch in volumes.batch(512).prefetch(8):
    for _ in range(30):
        tf.reduce_sum(tf.sort(batch[:64], axis=-1))

# %% retry
shapes = [batch.shape for batch in volumes.batch(8).prefetch(2).take(4)]
assert len(shapes) == 4
