# %% setup
import pandas as pd

with open("log.csv", "w") as file:
    file.write("time,sensor,message\n")
    lines = "".join(
        f"{i},sensor {i % 97},value is {i * 7919} at step {i}\n" for i in range(100_000)
    )
    for _ in range(150):
        file.write(lines)
del lines

# %%
frame = pd.read_csv("log.csv", dtype=object)

# %% retry
rows = 0
for part in pd.read_csv("log.csv", chunksize=50_000, nrows=200_000):
    rows += len(part)
assert rows == 200_000
