"""Meaning of the messages of the C library's heap checks."""

from __future__ import annotations

from . import table


def heap_damage(message: str) -> str | None:
    """The kind of damage that a line of glibc's heap checks reports; None when the message is not in the table.

    ``overwritten``, ``freed twice``, ``foreign pointer``, ``foreign allocator`` or ``setting``.
    """
    rows = table("native_aborts")["malloc"]
    return next((row["kind"] for row in rows if row["text"] in message), None)
