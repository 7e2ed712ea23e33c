# %% setup
import ctypes

import near_limit

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

# %%
blocks = []
while near_limit.room(0.955) > 8 * near_limit.MIB:
    blocks.append(libc.malloc(near_limit.MIB))
    ctypes.memset(blocks[-1], len(blocks) % 256, near_limit.MIB)
near_limit.hold()
first = [ctypes.string_at(block, 1)[0] for block in blocks[:100]]
assert first == [number % 256 for number in range(1, 101)]
for block in blocks:
    libc.free(block)
print("digest:", sum(first))
