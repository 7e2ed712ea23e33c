"""The panel of ``%tfguard panel``."""
