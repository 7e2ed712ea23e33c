# %% setup
import tensorflow as tf

weight = tf.Variable(tf.random.normal((600, 600), seed=2) / 25.0)
state = tf.ones((600, 600))

# %%
# The tape keeps every step's result for the gradient.
with tf.GradientTape(persistent=True) as tape:
    hidden = state
    for _step in range(20_000):
        hidden = tf.tanh(hidden @ weight)
    loss = tf.reduce_sum(hidden)

# %% retry
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.tanh(state @ weight))
assert tape.gradient(loss, weight) is not None
