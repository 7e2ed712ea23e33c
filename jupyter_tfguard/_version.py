"""The version, kept here and nowhere else in Python."""

__version__ = "0.1.0"
