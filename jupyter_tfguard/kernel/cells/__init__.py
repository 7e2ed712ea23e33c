"""Cells: start, end, memory, what holds it, and the alarm about growth."""
