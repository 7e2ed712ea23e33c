# %% setup
import near_limit
import numpy as np

block = np.random.default_rng(0).bytes(8 * near_limit.MIB)
with open("big.bin", "wb") as file:
    for _ in range(150):
        file.write(block)
del block

# %%
# The file's pages fill the rest of the group; they give way when memory is needed.
blocks = near_limit.fill(0.88)
total = 0
for _ in range(2):
    with open("big.bin", "rb") as file:
        while part := file.read(1 << 20):
            total += len(part)
assert total == 2 * 150 * 8 * near_limit.MIB
print("digest:", total)
