# %% setup
import threading
import time

lines = []


def follow():
    time.sleep(1.5)
    while True:
        lines.append("entry " * 40_000 + str(len(lines)))


watcher = threading.Thread(target=follow, daemon=True)
watcher.start()

# %%
time.sleep(60)
raise MemoryError("the thread was stopped, and this cell could run to its end")

# %% retry
lines.clear()
time.sleep(0.5)
assert len(lines) < 20
