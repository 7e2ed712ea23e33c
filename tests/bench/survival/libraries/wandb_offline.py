# needs: wandb
# %% start
import wandb

run = wandb.init(mode="offline", project="p", settings=wandb.Settings(silent=True))
run.log({"loss": 1.0})

# %% after
import wandb

if "run" not in globals():
    run = wandb.init(mode="offline", project="p", settings=wandb.Settings(silent=True))
run.log({"loss": 0.5})
run.finish()
again = wandb.init(mode="offline", project="p", settings=wandb.Settings(silent=True))
again.log({"loss": 0.25})
again.finish()
