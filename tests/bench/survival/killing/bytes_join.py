# %% setup
import os

chunk = os.urandom(1 << 20)

# %%
parts = [chunk] * 4_000
archive = b"".join(parts)

# %% retry
archive = b"".join([chunk] * 16)
assert len(archive) == 16 << 20
