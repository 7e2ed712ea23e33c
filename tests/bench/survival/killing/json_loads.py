# %% setup
import json

record = {"id": 1, "tags": ["a", "b", "c"], "position": {"x": 1.5, "y": 2.5, "z": 3.5}}
text = "[" + ",".join([json.dumps(record)] * 3_500_000) + "]"

# %%
records = json.loads(text)

# %% retry
records = json.loads(text[: text.index(",{")] + "]")
assert records[0]["tags"] == ["a", "b", "c"]
