# %% setup
import near_limit
import tensorflow as tf

weight = tf.Variable(tf.eye(500))
state = tf.ones((1_000, 500))


def gradient(steps):
    with tf.GradientTape() as tape:
        hidden = state
        for _step in range(steps):
            hidden = tf.tanh(hidden @ weight)
        loss = tf.reduce_sum(hidden)
    return tape.gradient(loss, weight)


gradient(2)

# %%
kept = near_limit.fill(0.94, spare=150 * near_limit.MIB)
found = gradient(25)
assert found.shape == (500, 500)
print("digest:", f"{float(tf.reduce_sum(found)):.3e}", len(kept) > 3)
