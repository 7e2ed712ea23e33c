"""GPUs, read by a helper process, and which kernel uses them."""
