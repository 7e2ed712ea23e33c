# %% setup
import csv

with open("table.csv", "w") as file:
    for i in range(200_000):
        file.write(",".join(f"{i * k % 1_000_003}" for k in range(1, 21)) + "\n")

# %%
rows = []
while True:
    with open("table.csv", newline="") as file:
        rows += list(csv.reader(file))

# %% retry
del rows
with open("table.csv", newline="") as file:
    count = sum(1 for _ in csv.reader(file))
assert count == 200_000
