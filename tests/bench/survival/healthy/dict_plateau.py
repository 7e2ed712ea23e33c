# %% setup
import near_limit

# %%
table = {}
while near_limit.room(0.92) > 80 * near_limit.MIB:
    start = len(table)
    table |= {f"key {start + k}": (start + k, None) for k in range(2_000)}
near_limit.hold(0.5)
assert table["key 12345"] == (12_345, None)
print("digest:", sum(table[f"key {k}"][0] for k in range(1_000)))
