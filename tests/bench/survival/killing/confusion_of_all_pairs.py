# %% setup
from difflib import SequenceMatcher

names = [
    f"Company {i * 7919 % 10_007}, {i % 31} Long Street, Town {i}, Country {i % 7}"
    for i in range(4_000)
]

# %%
# Caching a matcher per pair is what fills the memory.
matchers = {}
for first in names:
    for second in names:
        matcher = SequenceMatcher(None, first, second)
        matcher.quick_ratio()
        matchers[first, second] = matcher

# %% retry
matchers.clear()
assert SequenceMatcher(None, names[0], names[0]).ratio() == 1.0
