# %% setup
import time

import near_limit
import numpy as np

# %%
blocks = []
while (left := near_limit.room(0.97)) > 4 * near_limit.MIB:
    blocks.append(np.full(min(left, 16 * near_limit.MIB) // 8, float(len(blocks))))
    time.sleep(0.02)
near_limit.hold(1.0)
assert all(block[0] == block[-1] == number for number, block in enumerate(blocks))
print("digest:", len(blocks) > 10, float(sum(block[0] for block in blocks[:10])))
