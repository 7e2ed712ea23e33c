# %% setup
import cProfile
import pstats

import near_limit


def grow():
    rows = []
    while near_limit.room(0.93) > 0:
        rows.append([float(k) for k in range(20_000)])
    return rows


# %%
profile = cProfile.Profile()
rows = profile.runcall(grow)
calls = pstats.Stats(profile).total_calls
assert calls > len(rows)
print("digest:", sum(row[-1] for row in rows[:100]))
