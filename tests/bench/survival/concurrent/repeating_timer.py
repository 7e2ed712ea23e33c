# %% setup
import threading
import time

samples = []


def sample():
    samples.append([float(k) for k in range(60_000)])
    timer = threading.Timer(0.005, sample)
    timer.daemon = True
    timer.start()


# %%
for _ in range(3):
    sample()
while True:
    time.sleep(0.1)

# %% retry
samples.clear()
time.sleep(0.5)
assert len(samples) < 200
