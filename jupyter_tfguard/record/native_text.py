"""The files of native text in a recording, as everybody but their kernel sees them: names, sizes, the last words.

Their kernel writes them: spool.py.
"""

from __future__ import annotations

import contextlib
import os

from ..errors import FolderUnusable
from .folders import PrivateFolder
from .linux_files import punch
from .outlet import WAITING_BYTES

PREFIX = "stderr."
SUFFIX = ".txt"
NATIVE_TEXT_FILES = f"{PREFIX}*{SUFFIX}"
# Key of the recording's header: bytes of native text that were not forwarded.
NATIVE_TEXT_DROPPED = "native_text_dropped_bytes"
KEPT_BYTES = 64 * 1024
FILE_BYTES = 96 * 1024
# Text begins here. Who opens /dev/stderr by its name, empties the file and writes at its start does not run into it.
LEAD_BYTES = 8 * 1024
# Before the number of a file there is one for what was cleared from it.
NUMBER_STEP = 2
FILES_KEPT = 3
# More than this of one file is never read to the end by its kernel: the part between may be given back from outside.
_HEAD_BYTES = WAITING_BYTES + FILE_BYTES
_OVERGROWN_BYTES = 2 * WAITING_BYTES
_LOOKS = 3


def file_name(number: int) -> str:
    """Name of the file with this number; the highest number is the newest."""
    return f"{PREFIX}{number}{SUFFIX}"


def numbers_of(names: list[str]) -> list[int]:
    """Numbers of the files of native text among `names`, oldest first."""
    return sorted(
        int(middle)
        for name in names
        if name.startswith(PREFIX)
        and name.endswith(SUFFIX)
        and (middle := name[len(PREFIX) : -len(SUFFIX)]).isascii()
        and middle.isdigit()
        and len(middle) < 20
    )


def last_words(folder: PrivateFolder) -> str:
    """The newest native text in a recording, at most :data:`KEPT_BYTES` of UTF-8; NUL bytes are left out."""
    text = b""
    for _ in range(_LOOKS):
        numbers = numbers_of(folder.names())[-FILES_KEPT:]
        parts = [
            folder.read(file_name(number), FILE_BYTES) or b""
            for number in numbers
            # Of one that is just being cleared the copy is whole, and what remains of itself stands in the copy.
            if number - 1 not in numbers or not _is_being_cleared(folder, number)
        ]
        text = b"".join(parts).replace(b"\0", b"")
        if numbers == numbers_of(folder.names())[-FILES_KEPT:]:
            break  # otherwise the files have just taken turns
    return text[-KEPT_BYTES:].decode("utf-8", "replace")


def _is_being_cleared(folder: PrivateFolder, number: int) -> bool:
    """True when the place of its first letter is empty: it is cleared from its start on."""
    try:
        descriptor = folder.open(file_name(number), os.O_RDONLY)
    except (OSError, FolderUnusable):
        return False
    try:
        os.lseek(descriptor, LEAD_BYTES, os.SEEK_SET)
        return os.read(descriptor, 1) == b"\0"
    except OSError:
        return False
    finally:
        os.close(descriptor)


def give_space_back(folder: PrivateFolder) -> None:
    """From outside the kernel: bound the disk space of its native text while it cannot do so itself, the GIL being held.

    The first :data:`WAITING_BYTES`, which the kernel will still pass on, and the last words stay. Nothing is raised.
    """
    for number in numbers_of(folder.names()):
        with contextlib.suppress(OSError, FolderUnusable):
            # Looked at by name: opening each file at each look would cost more than it is worth.
            found = os.stat(folder.path / file_name(number), follow_symlinks=False)
            if found.st_blocks * 512 < _OVERGROWN_BYTES:
                continue
            descriptor = folder.open(file_name(number), os.O_WRONLY)
            try:
                end = os.fstat(descriptor).st_size - KEPT_BYTES
                if end > _HEAD_BYTES:
                    punch(descriptor, _HEAD_BYTES, end - _HEAD_BYTES)
            finally:
                os.close(descriptor)
