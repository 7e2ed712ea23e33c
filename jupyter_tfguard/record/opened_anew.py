"""A file of native text that somebody opened by its name, ``/dev/stderr``: it is followed, and used for nothing new."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from .linux_files import Identity, checked_size, close_ours, punch
from .native_text import FILE_BYTES
from .outlet import Outlet

# Read at once.
CHUNK_BYTES = 256 * 1024
# More than this at once is handed on, and not written to the current file as well.
ADDED_BYTES = 16 * 1024
_PUNCH_BYTES = 1024 * 1024


class OpenedAnew:
    """A file of ours that somebody opened by its name (``> /dev/stderr``, ``tee /dev/stderr``): text grows at two places.

    It is not used for anything new, only followed: who holds it may write on.

    Args:
        descriptor: The file.
        identity: Its device and inode.
        front: From here on one writer goes on, up to `wall`.
        end: From here on the other goes on.
    """

    def __init__(
        self, descriptor: int, identity: Identity | None, front: int, wall: int, end: int
    ) -> None:
        self.descriptor = descriptor
        self.identity = identity
        self._front, self._wall, self._end = front, wall, end
        self._punched = 0

    def erase_head(self) -> None:
        """Erase the first byte of text that was taken: so the next text there is known for new, also if it is the same."""
        if self._front:
            with contextlib.suppress(OSError):
                os.pwrite(self.descriptor, b"\0", 0)

    def take(self, outlet: Outlet, add: Callable[[bytes, Outlet], None]) -> None:
        """Hand on what is new, by way of `add` of the current file."""
        size = checked_size(self.descriptor, self.identity)
        if self._front and (size < self._front or os.pread(self.descriptor, 1, 0).strip(b"\0")):
            # Emptied again: what is at its start is new, for what was taken there is erased.
            self._front, self._wall, self._punched = 0, self._end, 0
        text = b""
        if self._front < self._wall:
            length = min(CHUNK_BYTES, self._wall - self._front)
            text = os.pread(self.descriptor, length, self._front).partition(b"\0")[0]
            at_head = not self._front
            self._front += len(text)
            if at_head:
                self.erase_head()
        while chunk := os.pread(self.descriptor, CHUNK_BYTES, self._end):
            self._end += len(chunk)
            new = chunk.replace(b"\0", b"")
            outlet.drop(len(chunk) - len(new))  # written, and cut off before it was taken
            text += new
            if len(text) > ADDED_BYTES:
                outlet.put(text)
                text = b""
        add(text, outlet)
        if self._end - FILE_BYTES - self._punched > _PUNCH_BYTES:
            with contextlib.suppress(OSError):
                punch(self.descriptor, self._punched, self._end - FILE_BYTES - self._punched)
            self._punched = self._end - FILE_BYTES

    def close(self) -> None:
        """Give the descriptor back."""
        close_ours(self.descriptor, self.identity)
