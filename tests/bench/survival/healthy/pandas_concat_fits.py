# %% setup
import near_limit
import numpy as np
import pandas as pd

# %%
# The parts and the result together are the peak.
rows = near_limit.room(0.93) // 2 // 32
parts = [
    pd.DataFrame(np.full((rows // 8, 4), float(number)), columns=list("abcd"))
    for number in range(8)
]
table = pd.concat(parts, ignore_index=True)
near_limit.hold(0.2)
del parts
assert len(table) == rows // 8 * 8
assert table["a"].iloc[0] == 0.0
print("digest:", float(table["d"].max()))
