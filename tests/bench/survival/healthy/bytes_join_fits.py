# %% setup
import near_limit

# %%
size = near_limit.room(0.95) // 2 // 64
parts = [bytes([number % 251]) * size for number in range(64)]
whole = b"".join(parts)
assert len(whole) == 64 * size
assert whole[-1] == 63
print("digest:", whole[0], whole[size], whole[2 * size])
