# %% setup
from collections import deque

import near_limit
import numpy as np

# %%
# A replay buffer: full all the time, one element goes for each that comes.
replay = deque(maxlen=near_limit.room(0.95) // (2 * near_limit.MIB))
for number in range(5_000):
    replay.append(np.full(262_144, float(number)))
assert replay[-1][0] == 4_999.0
assert len(replay) == replay.maxlen
print("digest:", float(replay[-1][0]))
