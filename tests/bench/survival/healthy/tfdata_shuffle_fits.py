# %% setup
import near_limit
import tensorflow as tf

images = tf.data.Dataset.range(100_000).map(
    lambda i: tf.fill((128, 128, 3), tf.cast(i, tf.float32))
)
for _batch in images.take(64).batch(32):
    pass

# %%
count = (near_limit.room(0.93) - 50 * near_limit.MIB) // (128 * 128 * 3 * 4)
shuffled = images.take(count).shuffle(count, seed=1).batch(32)
total = sum(float(tf.reduce_sum(batch[:, 0, 0, 0])) for batch in shuffled)
assert total == sum(range(count))
print("digest:", total > 0)
