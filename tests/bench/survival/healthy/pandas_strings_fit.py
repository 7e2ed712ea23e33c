# %% setup
import near_limit
import pandas as pd

# %%
parts = []
while near_limit.room(0.92) > 40 * near_limit.MIB:
    parts.append(pd.Series([f"customer {len(parts)}-{k}" for k in range(50_000)], dtype=object))
upper = parts[0].str.upper()
assert upper.iloc[0] == "CUSTOMER 0-0"
print("digest:", "".join(upper.iloc[:5]))
