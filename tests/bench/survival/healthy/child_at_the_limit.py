# %% setup
import subprocess
import sys

import near_limit

code = """
import near_limit
blocks = near_limit.fill(0.94)
near_limit.hold()
print(sum(float(block[0]) for block in blocks[:5]))
"""

# %%
# It is a child process that needs the memory.
done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
assert done.returncode == 0, done.stderr
assert float(done.stdout) == 5.0
print("digest:", done.stdout.strip(), near_limit.room(0.5) > 0)
