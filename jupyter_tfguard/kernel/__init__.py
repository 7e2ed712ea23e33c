"""The guard in the kernel: how it starts, what it listens to, and how it goes."""
