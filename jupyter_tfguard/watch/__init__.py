"""Tracks kernels from outside: pidfd, exit status, samples by pid, the GPU helper process. Independent of Jupyter."""
