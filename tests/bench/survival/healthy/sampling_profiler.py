# %% setup
import collections
import signal

import near_limit
import numpy as np

samples = collections.Counter()


def sample(number, frame):
    samples[frame.f_code.co_name] += 1


# %%
earlier = signal.signal(signal.SIGPROF, sample)
signal.setitimer(signal.ITIMER_PROF, 0.002, 0.002)
blocks = near_limit.fill(0.955)
total = sum(float(np.sqrt(block).sum()) for block in blocks[:-2] for block in (block[:100_000],))
signal.setitimer(signal.ITIMER_PROF, 0)
signal.signal(signal.SIGPROF, earlier)
assert sum(samples.values()) > 3
print("digest:", total / len(blocks[:-2]))
