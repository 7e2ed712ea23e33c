# %% setup
import json

import near_limit

rows = [{"id": k, "name": f"row {k}", "value": k / 7} for k in range(150_000)]
text = json.dumps(rows)
del rows

# %%
tables = []
while near_limit.room(0.92) > 70 * near_limit.MIB:
    tables.append(json.loads(text))
assert all(table[-1]["id"] == 149_999 for table in tables)
print("digest:", tables[0][77]["value"])
