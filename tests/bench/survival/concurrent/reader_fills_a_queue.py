# %% setup
import queue
import threading
import time

ready = queue.Queue()


def read():
    while True:
        ready.put(bytearray(b"x" * (2 << 20)))


# %%
threading.Thread(target=read, daemon=True).start()
total = 0
while True:
    total += len(ready.get())
    time.sleep(0.05)

# %% retry
ready = queue.Queue()
ready.put(1)
assert ready.get() == 1
