"""The part of the guard that runs inside the kernel: start, events, and unloading."""
