"""An estimate of the memory of a fit from its traced training step."""
