"""A lower bound of the memory of a fit, from known sizes, before its first step."""
