# %% setup
import near_limit

# %%
# realloc moves the block as it grows.
buffer = bytearray()
part = b"0123456789abcdef" * 65_536
while near_limit.room(0.90) > 2 * len(part):
    buffer += part
assert buffer[: len(part)] == part
assert len(buffer) % len(part) == 0
print("digest:", buffer[:16].decode())
