"""What the kernel of a replayed notebook is called."""

KERNEL_NAME = "tfguard-replay"
