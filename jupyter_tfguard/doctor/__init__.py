"""Checks before a crash: whether every part of tfguard works, and if not, why and what to do."""
