"""The memory guard in this kernel: cells, callbacks, fits and loops that are stopped."""
