# %% setup
import random

random.seed(0)

# %%
counts = {}
while True:
    word = f"word{random.getrandbits(48)}"
    counts[word] = [counts.get(word, [0])[0] + 1, word[::-1]]

# %% retry
counts.clear()
for number in range(1_000):
    counts[number % 7] = counts.get(number % 7, 0) + 1
assert sum(counts.values()) == 1_000
