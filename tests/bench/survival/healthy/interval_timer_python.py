# %% setup
import signal

import near_limit

# %%
ticks = []
earlier = signal.signal(signal.SIGALRM, lambda number, frame: ticks.append(near_limit.room(1.0)))
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
blocks = near_limit.fill(0.95)
near_limit.hold(1.0)
signal.setitimer(signal.ITIMER_REAL, 0)
signal.signal(signal.SIGALRM, earlier)
assert len(ticks) > 10
print("digest:", float(blocks[0].sum()))
