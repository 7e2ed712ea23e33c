# %% setup
import near_limit
import pandas as pd

with open("table.csv", "w") as file:
    file.write("id,price,amount\n")
    file.writelines(f"{i},{i / 8},{i % 9}\n" for i in range(1_000_000))

# %%
kept = near_limit.fill(0.95, spare=110 * near_limit.MIB)
frame = pd.read_csv("table.csv")
assert len(frame) == 1_000_000
print("digest:", float(frame["price"].sum()), int(frame["amount"].sum()), len(kept) > 3)
