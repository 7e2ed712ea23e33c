# %% setup
import near_limit

# %%
rows = []
while near_limit.room(0.95) > 0:
    start = len(rows)
    rows.extend({"row": start + i, "value": float(i)} for i in range(5_000))
near_limit.hold(1.0)
assert rows[-1]["row"] == len(rows) - 1
print("digest:", sum(row["row"] for row in rows[:1_000]))
