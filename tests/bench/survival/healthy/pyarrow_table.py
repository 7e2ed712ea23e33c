# needs: pyarrow
# %% setup
import near_limit
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# %%
# Arrow has an allocator of its own.
columns = []
source = pa.array(np.arange(2_000_000, dtype="int64"))
while near_limit.room(0.94) > 34 * near_limit.MIB:
    columns.append(pc.add(source, len(columns)))
near_limit.hold()
assert all(column[0].as_py() == number for number, column in enumerate(columns))
print("digest:", sum(column[1].as_py() for column in columns[:40]))
