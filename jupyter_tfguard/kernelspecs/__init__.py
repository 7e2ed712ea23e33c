"""The kernels that Jupyter can start on this machine, and how to load the guard into kernels of other environments."""
