# %% setup
import os
import signal

import near_limit

seen = []
numbers = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGRTMIN + 5, signal.SIGRTMAX]
earlier = {number: signal.signal(number, lambda n, frame: seen.append(n)) for number in numbers}

# %%
kept = near_limit.fill(0.95)
for number in numbers:
    for _ in range(20):
        os.kill(os.getpid(), number)
        sum(range(1_000))
for number, handler in earlier.items():
    signal.signal(number, handler)
assert {int(n) for n in seen} == {int(n) for n in numbers}
print("digest:", sorted({int(n) for n in seen}), len(kept) > 3)
