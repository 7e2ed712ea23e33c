# %% setup
from multiprocessing import shared_memory

import near_limit
import numpy as np

# %%
# Shared memory is not file cache: it counts as use.
kept = near_limit.fill(0.93, spare=302 * near_limit.MIB)
block = shared_memory.SharedMemory(create=True, size=300 * near_limit.MIB)
try:
    view = np.ndarray(block.size // 8, buffer=block.buf)
    view[:] = 3.0
    near_limit.hold(0.3)
    total = float(view[::4_096].sum())
    assert view[0] == view[-1] == 3.0
    del view
finally:
    block.close()
    block.unlink()
print("digest:", total, len(kept) > 3)
