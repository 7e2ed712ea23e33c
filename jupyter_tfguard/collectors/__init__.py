"""One file per source of facts; each declares the metrics it reads."""
