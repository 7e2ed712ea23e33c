# %% setup
import near_limit

# %%
size = near_limit.room(0.94) // 2
lines = []
count = 0
while count < size - 60_000:
    lines.append(f"{len(lines):09d},ready,ok\n" * 2_000)
    count += len(lines[-1]) + 49
text = "".join(lines)
assert text.count("\n", 0, 190_000) == 10_000
print("digest:", text[:18], text[38_000:38_018])
