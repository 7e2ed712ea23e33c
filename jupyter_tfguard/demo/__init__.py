"""Real deaths of real kernels in a real Jupyter server, and the reports about them."""

from .own_limit import limit_memory

__all__ = ["limit_memory"]
