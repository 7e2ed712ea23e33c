# %% setup
import subprocess
import sys

import numpy as np

code = """
import sys
import numpy as np
while True:
    sys.stdout.buffer.write(np.random.random(250_000).tobytes())
"""

# %%
# Everything that the child prints is kept in this process.
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
received = []
while data := child.stdout.read(2_000_000):
    received.append(np.frombuffer(data))

# %% retry
child.kill()
child.wait()
received.clear()
done = subprocess.run([sys.executable, "-c", "print(7)"], capture_output=True, text=True)
assert done.stdout.strip() == "7"
