# %% setup
import queue
import threading

import near_limit
import numpy as np

# %%
size = 8 * near_limit.MIB
waiting = queue.Queue(maxsize=near_limit.room(0.94) // size - 4)


def produce():
    for number in range(600):
        waiting.put(np.full(size // 8, float(number)))
    waiting.put(None)


producer = threading.Thread(target=produce)
producer.start()
while not waiting.full():
    near_limit.hold(0.01)
total = 0.0
while (block := waiting.get()) is not None:
    total += float(block[:1_000].sum())
producer.join()
assert total == 1_000 * sum(range(600))
print("digest:", total)
