"""Real crashes of real kernels in a real Jupyter server, and their reports."""

from .own_limit import limit_memory

__all__ = ["limit_memory"]
