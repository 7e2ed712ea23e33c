"""Kernels that hang, and fits that make no step."""
