# %% setup
import itertools

rates = [0.1 * k for k in range(76)]

# %%
grid = list(itertools.product(rates, rates, rates, rates))

# %% retry
grid = list(itertools.product(rates[:6], rates[:6], rates[:6]))
assert len(grid) == 216
