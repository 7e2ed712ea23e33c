# needs: polars
# %% setup
import near_limit
import polars as pl

pl.DataFrame({"x": [1, 2]}).select(pl.col("x").sum())

# %%
frames = []
while near_limit.room(0.92) > 60 * near_limit.MIB:
    frames.append(pl.DataFrame({"x": pl.int_range(2_000_000, eager=True)}))
near_limit.hold()
totals = [frame["x"].sum() for frame in frames]
assert totals == [1_999_999_000_000] * len(frames)
print("digest:", totals[0])
