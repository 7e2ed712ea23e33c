# %% setup
import subprocess
import sys

import near_limit

# %%
kept = near_limit.fill(0.90)
answers = [
    subprocess.run(
        [sys.executable, "-S", "-c", f"print({n} ** 2)"], capture_output=True, text=True
    ).stdout
    for n in range(10)
]
assert [int(answer) for answer in answers] == [n**2 for n in range(10)]
print("digest:", sum(map(int, answers)), len(kept) > 3)
