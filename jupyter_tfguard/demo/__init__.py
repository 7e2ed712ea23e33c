"""Real deaths of real kernels in a real Jupyter server, and the reports about them."""
