"""Some steps of a fit in a child process, and what is learned from them."""
