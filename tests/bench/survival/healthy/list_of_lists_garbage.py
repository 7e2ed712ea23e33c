# %% setup
import gc

import near_limit

# %%
# Reference cycles, collected now and then: the use goes up and down.
kept = near_limit.fill(0.90)
for _turn in range(200):
    ring = []
    for number in range(20_000):
        ring.append([number, ring])
    del ring
gc.collect()
assert near_limit.room(0.97) > 0
print("digest:", len(kept) > 3)
