# %% setup
import mmap

import near_limit

with open("base.bin", "wb") as file:
    file.write(b"\1" * (200 * near_limit.MIB))

# %%
kept = near_limit.fill(0.95, spare=202 * near_limit.MIB)
with open("base.bin", "rb") as file:
    view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
for page in range(0, len(view), 4_096):
    view[page] = 2
near_limit.hold(0.2)
assert view[0] == 2
assert view[1] == 1
print("digest:", sum(view[::65_536]), len(kept) > 3)
