# %% setup
results = {}


def simulate(seed):
    return [seed * k for k in range(20_000)]


# %%
seed = 0
while True:
    seed += 1
    try:
        results[seed] = simulate(seed)
    except MemoryError:
        continue

# %% retry
results.clear()
results[1] = simulate(1)
assert len(results[1]) == 20_000
