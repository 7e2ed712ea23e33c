# %% setup
import near_limit

# %%
first = near_limit.fill(0.80)

# %%
second = near_limit.fill(0.93)

# %%
# Cells that start in a nearly full kernel.
text = ", ".join(str(len(part)) for part in (first, second))
numbers = [k**2 for k in range(100_000)]

# %%
third = near_limit.fill(0.96)
near_limit.hold()

# %%
assert numbers[-1] == 99_999**2
print("digest:", sum(numbers), len(text) > 2)
