# needs: mlflow
# %% start
import mlflow

mlflow.set_tracking_uri("sqlite:///runs.db")
with mlflow.start_run():
    mlflow.log_metric("loss", 1.0)

# %% after
import mlflow

mlflow.set_tracking_uri("sqlite:///runs.db")
with mlflow.start_run():
    mlflow.log_metric("loss", 0.5)
