# %% setup
import asyncio
import json

text = json.dumps([{"id": k, "tags": ["a", "b"], "values": list(range(20))} for k in range(20_000)])

# %%
loop = asyncio.get_running_loop()
documents = []
while True:
    documents += await asyncio.gather(  # noqa: F704
        *(loop.run_in_executor(None, json.loads, text) for _ in range(4))
    )

# %% retry
documents = None
assert await asyncio.get_running_loop().run_in_executor(None, len, text) > 0  # noqa: F704
