# needs: numba
# %% setup
import near_limit
import numba
import numpy as np


@numba.njit
def running(data):
    result = np.empty_like(data)
    total = 0.0
    for k in range(data.size):
        total += data[k]
        result[k] = total
    return result


running(np.ones(10))

# %%
# Compiled code takes its memory from a runtime of its own.
data = np.ones(near_limit.room(0.95) // 16)
result = running(data)
near_limit.hold(0.2)
assert result[-1] == data.size
print("digest:", float(result[999]))
