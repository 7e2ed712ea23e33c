"""Data that a run keeps in memory on purpose, and whether they are what filled it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Kept(NamedTuple):
    """Elements that a step of a pipeline keeps in memory.

    Attributes:
        text: What it keeps, and how it would keep less, a sentence.
        size_bytes: Of all elements, once it is full.
    """

    text: str
    size_bytes: int


def large_part(kept: Sequence[Kept], added_bytes: float) -> list[Kept]:
    """Those that together may be half of the added memory or more, largest first; otherwise none."""
    found = sorted(kept, key=lambda one: -one.size_bytes)
    return found if 2 * sum(one.size_bytes for one in found) >= added_bytes else []
