"""Follows a file of records while it is written: each time only what is new is read."""

from __future__ import annotations

import os
import time

from ..errors import FolderUnusable, RecordUnreadable
from ..private_files import PrivateFolder
from .records import HEADER_BYTES, Record, RecordHeader, intact_records, read_header

# What a reader looks at each time when nothing is new; more than a write that was interrupted leaves unused.
_LOOK_BYTES = 16 * 1024
_READ_BYTES = 64 * 1024
# File systems tell times in steps of some milliseconds; a file as old as this has none of its step left to come.
_SETTLED_SECONDS = 1.0


class RecordTail:
    """The records of one file that were not seen before.

    Args:
        name: Of the file.
        limit_bytes: A file that says of itself that it is longer is not followed: it is not one of ours.
    """

    def __init__(self, name: str, limit_bytes: int) -> None:
        self._name = name
        self._limit_bytes = limit_bytes
        self._header: RecordHeader | None = None
        self._file: tuple[int, int] | None = None
        self._last = 0
        self._gap = 0
        self._waits = False
        self._settled: tuple[int, int] | None = None

    def read(self, folder: PrivateFolder) -> list[Record]:
        """New records in the order they were written; none when the file cannot be read now.

        Where the writer has gone once around the ring since the last time, the oldest are lost.
        """
        stamp = self._stamp(folder)
        if stamp is None or stamp == self._settled:
            return []
        try:
            descriptor = folder.open(self._name, os.O_RDONLY)
        except (OSError, FolderUnusable):
            return []
        try:
            header = self._read_header(descriptor)
            if header is None:
                return []
            records = self._in_order(self._found(descriptor, header), header)
        except OSError:
            return []
        finally:
            os.close(descriptor)
        is_old = time.time() - stamp[0] / 1e9 > _SETTLED_SECONDS
        self._settled = stamp if is_old and not self._waits else None
        return records

    def _stamp(self, folder: PrivateFolder) -> tuple[int, int] | None:
        """When the file was last written to, and which it is: a look, a tenth as dear as opening it."""
        try:
            found = os.stat(folder.path / self._name, follow_symlinks=False)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def _read_header(self, descriptor: int) -> RecordHeader | None:
        stat = os.fstat(descriptor)
        if self._header is None or self._file != (stat.st_dev, stat.st_ino):
            self._file, self._header = (stat.st_dev, stat.st_ino), None
            self._last = self._gap = 0
            try:
                found = read_header(_read_at(descriptor, HEADER_BYTES, 0))
            except RecordUnreadable:
                return None
            if found.file_bytes <= self._limit_bytes:
                self._header = found
        return self._header

    def _found(self, descriptor: int, header: RecordHeader) -> dict[int, Record]:
        """Records later than the last one known, from its place in the ring on, at most once around."""
        found: dict[int, Record] = {}
        size, slot, left = header.record_bytes, self._last % header.capacity, header.capacity
        length = _LOOK_BYTES
        while left:
            count = min(max(1, length // size), left, header.capacity - slot)
            content = _read_at(descriptor, count * size, HEADER_BYTES + slot * size)
            records = list(intact_records(content, size))
            found |= {r.sequence: r for r in records if r.sequence > self._last}
            # The writer goes from slot to slot: where the last one looked at is not new, none behind it is.
            end = records[-1].sequence if records else 0
            if end <= self._last or (end - 1) % header.capacity != slot + count - 1:
                break
            left -= count
            slot = (slot + count) % header.capacity
            length = _READ_BYTES
        return found

    def _in_order(self, found: dict[int, Record], header: RecordHeader) -> list[Record]:
        """The records up to a gap. One that is still there the next time will stay: its number was never used."""
        numbers = sorted(found)
        lapped = bool(numbers) and numbers[-1] - self._last >= header.capacity
        records = []
        self._waits = False
        for number in numbers:
            if number != self._last + 1 and not lapped and self._gap != self._last + 1:
                self._gap = self._last + 1
                self._waits = True
                break
            records.append(found[number])
            self._last = number
        return records


def _read_at(descriptor: int, length: int, start: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, start)
    os.lseek(descriptor, start, os.SEEK_SET)
    return os.read(descriptor, length)
