"""Follows a file of records while it is written. Each record is returned once, in order."""

from __future__ import annotations

import os
import time

from ..errors import RecordUnreadable
from ..private_files import PrivateFolder
from .records import HEADER_BYTES, Record, intact_records, read_header

# File times have a resolution of some milliseconds. After this long, a new write always changes the file time.
_SETTLED_SECONDS = 1.0


class RecordTail:
    """Returns the new records of one file.

    Args:
        name: File name.
        limit_bytes: A longer file is not followed; the guard does not write such files.
    """

    def __init__(self, name: str, limit_bytes: int) -> None:
        self._name = name
        self._limit_bytes = limit_bytes
        self._inode = 0
        self._last = 0
        self._gap = 0
        self._waits = False
        self._settled: tuple[int, int] | None = None

    def read(self, folder: PrivateFolder) -> list[Record]:
        """New records in the order they were written; none if the file cannot be read now.

        If the writer has overwritten the whole ring since the last call, the oldest records are lost.
        """
        try:
            found = os.stat(folder.path / self._name, follow_symlinks=False)
        except OSError:
            return []
        # A stat costs a tenth of a read.
        stamp = (found.st_mtime_ns, found.st_ino)
        if stamp == self._settled:
            return []
        if found.st_ino != self._inode:
            self._inode, self._last, self._gap = found.st_ino, 0, 0
        content = folder.read(self._name, self._limit_bytes) or b""
        try:
            header = read_header(content)
        except RecordUnreadable:
            return []
        body = content[HEADER_BYTES : header.file_bytes]
        new = {r.sequence: r for r in intact_records(body, header.record_bytes, after=self._last)}
        records = self._in_order(new, header.capacity)
        is_old = time.time() - found.st_mtime > _SETTLED_SECONDS
        self._settled = stamp if is_old and not self._waits else None
        return records

    def _in_order(self, new: dict[int, Record], capacity: int) -> list[Record]:
        """The records up to a gap. A gap that persists at the next read is permanent: its number was never used."""
        numbers = sorted(new)
        lapped = bool(numbers) and numbers[-1] - self._last >= capacity
        records = []
        self._waits = False
        for number in numbers:
            if number != self._last + 1 and not lapped and self._gap != self._last + 1:
                self._gap = self._last + 1
                self._waits = True
                break
            records.append(new[number])
            self._last = number
        return records
