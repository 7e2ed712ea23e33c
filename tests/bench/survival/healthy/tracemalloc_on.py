# %% setup
import tracemalloc

import near_limit

# %%
tracemalloc.start()
rows = []
while near_limit.room(0.90) > 0:
    rows.append([len(rows)] * 10_000)
peak = tracemalloc.get_traced_memory()[1]
tracemalloc.stop()
assert rows[-1][0] == len(rows) - 1
print("digest:", sum(row[0] for row in rows[:100]), peak > 10**8)
