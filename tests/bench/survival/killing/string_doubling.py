# %% setup
line = "an ordinary line of a log file\n" * 1_000

# %%
text = line
while True:
    text = text + text.upper()

# %% retry
text = line + line.upper()
assert len(text) == 2 * len(line)
