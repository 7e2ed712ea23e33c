# %% setup
import near_limit

# %%
kept = near_limit.fill(0.86)
part = bytes(range(256)) * 4_096
for number in range(3):
    with open(f"part{number}.bin", "wb") as file:
        for _ in range(300):
            file.write(part)
with open("part2.bin", "rb") as file:
    assert file.read(256) == bytes(range(256))
    size = file.seek(0, 2)
assert size == 300 << 20
print("digest:", size, len(kept) > 3)
