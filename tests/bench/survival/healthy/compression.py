# %% setup
import hashlib
import zlib

import near_limit

# %%
data = bytes(range(256)) * ((near_limit.room(0.95) // 2 - 70 * near_limit.MIB) // 256)
packed = zlib.compress(data[: 64 * near_limit.MIB], 1)
copy = bytearray(data)
near_limit.hold(0.2)
digest = hashlib.sha256(copy[:1_000_000]).hexdigest()
assert zlib.decompress(packed)[:256] == data[:256]
print("digest:", digest)
