"""The kernels that Jupyter can start on this machine, and how one of another environment gets the guard."""
