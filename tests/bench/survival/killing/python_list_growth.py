# %% setup
log = []

# %%
step = 0
while True:
    log.append({"step": step, "loss": 1.0 / (step + 1), "note": f"step {step}"})
    step += 1

# %% retry
del log
log = [{"step": step} for step in range(1_000)]
assert len(log) == 1_000
