"""From a dead kernel to a bundle."""
