"""From a dead kernel to a bundle and its report."""
