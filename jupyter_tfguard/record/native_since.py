"""The native text since a moment: what was written to fd 2 in this cell, for instance.

A place is told by two numbers that cost a microsecond to get; the text is read only where somebody wants it.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ..errors import FolderUnusable
from .folders import PrivateFolder
from .native_text import (
    FILE_BYTES,
    KEPT_BYTES,
    LEAD_BYTES,
    NUMBER_STEP,
    file_name,
    last_words,
    numbers_of,
)

_LOOKS = 3


class Place(NamedTuple):
    """Where the next word goes: number of the file, and position in it."""

    number: int
    position: int


def native_text_since(folder: PrivateFolder, place: Place) -> str:
    """What was written since then, at most the last 64 KiB; NUL bytes are left out.

    Of more than the files hold only the end is left. Text of children counts like the kernel's own.
    """
    for _ in range(_LOOKS):
        numbers = numbers_of(folder.names())
        text = _since(folder, place, numbers)
        if text is None:
            return last_words(folder)
        if numbers == numbers_of(folder.names()):
            return text.replace(b"\0", b"")[-KEPT_BYTES:].decode("utf-8", "replace")
    return last_words(folder)  # they take turns faster than they can be read: all of it is new


def _since(folder: PrivateFolder, place: Place, numbers: list[int]) -> bytes | None:
    """None when the file of that time was cleared, or used again since."""
    newest = numbers[-1] if numbers else None
    if newest == place.number:
        return _read_from(folder, place.number, place.position)
    if newest == place.number + NUMBER_STEP and place.number in numbers:
        before = _read_from(folder, place.number, place.position)
        # It was full; one that grew too long is cleared, and its last words lie elsewhere.
        if not _read_from(folder, place.number, LEAD_BYTES + KEPT_BYTES - 1).strip(b"\0"):
            return None
        # Between the two there may be a copy of what a child wrote just then.
        rest = (folder.read(file_name(n), FILE_BYTES) or b"" for n in (newest - 1, newest))
        return before + b"".join(rest)
    return None


def _read_from(folder: PrivateFolder, number: int, position: int) -> bytes:
    try:
        descriptor = folder.open(file_name(number), os.O_RDONLY)
    except (OSError, FolderUnusable):
        return b""
    try:
        start = max(position, os.fstat(descriptor).st_size - FILE_BYTES)
        os.lseek(descriptor, start, os.SEEK_SET)
        parts = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
            if sum(map(len, parts)) > 2 * FILE_BYTES:
                break
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
