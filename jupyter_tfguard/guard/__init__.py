"""Detects that memory is running out and stops the run with an exception that can be caught."""
