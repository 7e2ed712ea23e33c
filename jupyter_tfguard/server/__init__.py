"""The part that runs in Jupyter Server."""
