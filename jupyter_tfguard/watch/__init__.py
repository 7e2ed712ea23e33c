"""A kernel seen from outside: pidfd, wait status, samples by pid, the GPU helper process. Knows no Jupyter."""
