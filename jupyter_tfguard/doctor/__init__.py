"""Checks before the crash: is every part of tfguard in place, and if not, why and what to do."""
