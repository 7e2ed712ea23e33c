# %% setup
import os

import near_limit

# %%
# The child sees the parent's pages; nothing is copied.
blocks = near_limit.fill(0.93)
receive, send = os.pipe()
child = os.fork()
if child == 0:
    total = sum(float(block[::512].sum()) for block in blocks)
    os.write(send, str(total).encode())
    os._exit(0)
answer = float(os.read(receive, 100))
assert os.waitpid(child, 0)[1] == 0
assert answer == sum(block[::512].size for block in blocks)
print("digest:", answer > 0)
