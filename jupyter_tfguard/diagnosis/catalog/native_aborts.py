"""What the heap checks of the C library mean by their texts."""

from __future__ import annotations

from . import table


def heap_damage(message: str) -> str | None:
    """The kind of damage that a line of glibc's heap checks reports; None when its text is not in the table.

    ``overwritten``, ``freed twice``, ``foreign pointer``, ``foreign allocator`` or ``setting``.
    """
    rows = table("native_aborts")["malloc"]
    return next((row["kind"] for row in rows if row["text"] in message), None)
