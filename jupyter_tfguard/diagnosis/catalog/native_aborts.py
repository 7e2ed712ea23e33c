"""What the heap checks of the C library mean by their texts."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from . import table
from .origin import Origin, origin

_TABLE = "native_aborts"


@dataclass(frozen=True)
class HeapAbort:
    """A text of glibc's heap checks.

    Attributes:
        kind: ``overwritten``, ``freed twice``, ``foreign pointer``, ``foreign allocator`` or ``setting``.
        first: The first glibc that knows it; None for one before 2.17.
        last: The last one; None where it is still there.
    """

    text: str
    kind: str
    first: str | None
    last: str | None
    origin: Origin


def heap_abort(message: str) -> HeapAbort | None:
    """The text of a heap check that a line holds; None when it is not in the table."""
    return next((known for known in _by_length() if known.text in message), None)


@functools.cache
def _by_length() -> tuple[HeapAbort, ...]:
    """The longest first: ``malloc(): memory corruption (fast)`` holds a shorter one."""
    found = [
        HeapAbort(row["text"], row["kind"], row.get("first"), row.get("last"), origin(_TABLE, row))
        for row in table(_TABLE)["malloc"]
    ]
    return tuple(sorted(found, key=lambda known: -len(known.text)))
