# %% setup
import near_limit
import numpy as np

# %%
# A program that asks for too much, and then for less.
sizes = []
size = 10**14
while True:
    try:
        array = np.ones(size)
        break
    except MemoryError:
        sizes.append(size)
        size = near_limit.room(0.93) // 8
near_limit.hold()
assert array[-1] == 1.0
print("digest:", sizes[0])
