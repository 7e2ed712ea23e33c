# %% setup
import faulthandler

import near_limit

log = open("stacks.txt", "w")  # noqa: SIM115

# %%
faulthandler.dump_traceback_later(0.05, repeat=True, file=log)
blocks = near_limit.fill(0.95)
near_limit.hold(0.6)
faulthandler.cancel_dump_traceback_later()
log.flush()
with open("stacks.txt") as file:
    assert "hold" in file.read()
print("digest:", float(blocks[0].sum()))
