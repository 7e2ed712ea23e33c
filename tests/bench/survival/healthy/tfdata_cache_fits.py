# %% setup
import near_limit
import tensorflow as tf

features = tf.data.Dataset.range(100_000).map(
    lambda i: tf.fill((64, 64, 8), tf.cast(i, tf.float32))
)
for _batch in features.take(64).batch(32):
    pass

# %%
count = (near_limit.room(0.93) - 40 * near_limit.MIB) // (64 * 64 * 8 * 4)
cached = features.take(count).cache().batch(32)
totals = [sum(float(batch[0, 0, 0, 0]) for batch in cached) for _epoch in range(3)]
assert totals[0] == totals[1] == totals[2] == sum(range(0, count, 32))
print("digest:", totals[0] > 0)
