# needs: jax
# %% setup
import jax.numpy as jnp
import near_limit

jnp.full((10,), 1.0).sum()

# %%
arrays = []
while near_limit.room(0.94) > 24 * near_limit.MIB:
    arrays.append(jnp.full((2_000_000,), float(len(arrays))).block_until_ready())
near_limit.hold()
assert all(float(array[-1]) == number for number, array in enumerate(arrays))
print("digest:", sum(float(array[0]) for array in arrays[:50]))
