# %% setup
import queue
import threading

import numpy as np

batches = queue.Queue()  # no maxsize: the usual mistake
ended = threading.Event()


def produce():
    number = 0
    while not ended.is_set():
        batches.put(np.full((64, 64, 64, 3), number, dtype="float32"))
        number += 1


# %%
producer = threading.Thread(target=produce, daemon=True)
producer.start()
total = 0.0
while True:
    batch = batches.get()
    for _ in range(20):
        total += float(np.sort(batch, axis=None)[0])

# %% retry
ended.set()
producer.join(30)
batches = queue.Queue(maxsize=4)
batches.put(np.ones(10))
assert batches.get().sum() == 10
