"""Reads the stderr tail of a recording: the files ``stderr.N.txt``, which ``stderr_tail.py`` writes in the kernel."""

from __future__ import annotations

from ..private_files import PrivateFolder

PREFIX = "stderr."
SUFFIX = ".txt"
NATIVE_TEXT_FILES = f"{PREFIX}*{SUFFIX}"
# The two newest are kept: at least the last 1 MiB.
FILE_BYTES = 1024 * 1024
# The part of it that goes into a report.
KEPT_BYTES = 64 * 1024
# Recordings of version 2.0 had up to three files of this size, with NUL bytes around the text.
_READ_BYTES = 96 * 1024
_READ_FILES = 3


def file_name(number: int) -> str:
    """Name of the file with this number; the highest number is the newest."""
    return f"{PREFIX}{number}{SUFFIX}"


def numbers_of(names: list[str]) -> list[int]:
    """Numbers of the stderr files among `names`, oldest first."""
    return sorted(
        int(middle)
        for name in names
        if name.startswith(PREFIX)
        and name.endswith(SUFFIX)
        and (middle := name[len(PREFIX) : -len(SUFFIX)]).isascii()
        and middle.isdigit()
        and len(middle) < 20
    )


def stderr_end(folder: PrivateFolder) -> str:
    """The stderr tail of a recording: at most :data:`KEPT_BYTES` of UTF-8, without NUL bytes."""
    numbers = numbers_of(folder.names())[-_READ_FILES:]
    text = b"".join(folder.read(file_name(number), _READ_BYTES) or b"" for number in numbers)
    return text.replace(b"\0", b"")[-KEPT_BYTES:].decode("utf-8", "replace")


def native_text_since(folder: PrivateFolder, place: int) -> str:
    """The native text from byte `place` on, as far as it is kept: at least the last 1 MiB.

    Text of child processes is included. Each file but the newest has :data:`FILE_BYTES`.
    """
    parts = []
    for number in numbers_of(folder.names()):
        skipped = place - (number - 1) * FILE_BYTES
        if skipped < FILE_BYTES:
            text = folder.read(file_name(number), FILE_BYTES) or b""
            parts.append(text[max(0, skipped) :])
    return b"".join(parts).replace(b"\0", b"").decode("utf-8", "replace")
