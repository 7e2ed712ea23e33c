# %% setup
import near_limit

# %%
blocks = near_limit.fill(0.96)
near_limit.hold()
total = sum(float(block.sum()) for block in blocks)
assert total == sum(block.size for block in blocks)
print("digest:", sum(float(block[:100].sum()) for block in blocks[:5]))
