# %% setup
import numpy as np

archive = []


class Session:
    def __init__(self, number):
        self.state = np.full(50_000, number)

    def __del__(self):
        archive.append(np.concatenate([self.state, self.state]))


# %%
number = 0
while True:
    Session(number)
    number += 1

# %% retry
archive.clear()
one = Session(1)
assert one.state.sum() == 50_000
