# %% setup
total = 0

# %%
numbers = list(range(10**9))
total = sum(numbers)

# %% retry
total = sum(range(10**6))
assert total == 499_999_500_000
