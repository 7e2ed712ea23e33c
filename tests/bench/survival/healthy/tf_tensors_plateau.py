# %% setup
import near_limit
import tensorflow as tf

# %%
kept = []
while near_limit.room(0.93) > 40 * near_limit.MIB:
    kept.append(tf.fill((2 * near_limit.MIB,), float(len(kept))))
near_limit.hold()
assert all(float(tensor[-1]) == number for number, tensor in enumerate(kept))
print("digest:", sum(float(tf.reduce_max(tensor)) for tensor in kept[:20]))
