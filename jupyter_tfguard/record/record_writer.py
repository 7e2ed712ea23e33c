"""Writes files of records (records.py), from any thread or signal handler of one process.

A record is written by one ``pwrite`` that does not cross a page, so a kill leaves it whole or absent. Nothing is mapped
into memory: a file that somebody cuts short would end the process with SIGBUS.
"""

from __future__ import annotations

import errno
import itertools
import os
import threading
import time
import weakref
import zlib
from collections.abc import Mapping
from typing import Any

from .own_descriptors import close_ours, identity
from .records import (
    BLOCK_BYTES,
    FORMAT,
    HEADER_BYTES,
    RECORD_CRC,
    RECORD_HEAD,
    RECORD_HEAD_BYTES,
    check_sizes,
    header_block,
)

_NO_PREALLOCATION = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}

TypeTable = Mapping[int, Mapping[str, Any]]

_open_writers: weakref.WeakSet[RecordWriter] = weakref.WeakSet()


class RecordWriter:
    """Writes records into an open, empty file of its own. Threads and signal handlers may write at any time.

    A process forked off writes nothing, whatever its parent's threads were doing at that moment.

    Args:
        descriptor: Open for reading and writing; the writer's from here on, unless it raises.
        name: Of what is kept here, for the header.
        record_bytes: Size of a record, a power of two from 64 to 4096.
        capacity: Records kept.
        types: What the header says of each type of record.
        grow_bytes: Reserve the disk in steps of this size as the file fills; None: all of it now.

    Raises:
        OSError: The system refused; no space for the whole file, for instance: better now than at the last record.
        ValueError: The sizes are not allowed, or `types` is too long for a header.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        name: str,
        record_bytes: int,
        capacity: int,
        types: TypeTable,
        grow_bytes: int | None = None,
    ) -> None:
        check_sizes(record_bytes, capacity)
        self._descriptor = descriptor
        self._identity = identity(descriptor)
        self._record_bytes = record_bytes
        self._capacity = capacity
        self._end = HEADER_BYTES + capacity * record_bytes
        self._reserved = HEADER_BYTES
        self._grow_bytes = grow_bytes
        self._numbers = itertools.count(1)
        # Re-entrant: a signal handler of the user's may come to us inside a write.
        self._lock = threading.RLock()
        block = header_block(
            {
                "format": list(FORMAT),
                "name": name,
                "record_bytes": record_bytes,
                "capacity": capacity,
                "types": {str(number): dict(told) for number, told in types.items()},
                "created": time.time(),
            }
        )
        # Before the space is taken: whenever a kill comes, the file is empty or has its header.
        self._put(block, 0)
        self._put(block, BLOCK_BYTES)
        if grow_bytes is None:
            self._reserve(self._end)
        _open_writers.add(self)

    @property
    def payload_bytes(self) -> int:
        """The longest payload."""
        return self._record_bytes - RECORD_HEAD_BYTES

    def next_sequences(self, count: int) -> int:
        """The first of `count` sequences in a row that no other record gets."""
        while True:
            taken = [next(self._numbers) for _ in range(count)]
            # A signal handler or another thread that wrote in between left a gap, which is allowed anywhere else.
            if taken[-1] - taken[0] == count - 1:
                return taken[0]

    def write(
        self,
        type: int,
        payload: bytes,
        sequence: int | None = None,
        *,
        monotonic: float | None = None,
        wall: float | None = None,
    ) -> None:
        """Put a record over the oldest one; nothing happens once the writer is closed, or in a forked process.

        Args:
            type: What the payload is.
            payload: At most :attr:`payload_bytes`.
            sequence: Its place in the order; None: the next one.
            monotonic, wall: When it was; None: now.

        Raises:
            OSError: The system refused the write, or other code closed the descriptor: then this is told once.
            ValueError: The payload is too long.
        """
        if len(payload) > self.payload_bytes:
            raise ValueError(f"{len(payload)} bytes do not fit a record of {self._record_bytes}")
        if (
            self._descriptor < 0
        ):  # and in a forked process the lock may be held by a thread that is not there
            return
        body = (
            RECORD_HEAD.pack(
                type,
                len(payload),
                number := next(self._numbers) if sequence is None else sequence,
                time.monotonic() if monotonic is None else monotonic,
                time.time() if wall is None else wall,
            )
            + payload
        )
        record = (RECORD_CRC.pack(zlib.crc32(body)) + body).ljust(self._record_bytes, b"\0")
        start = HEADER_BYTES + (number - 1) % self._capacity * self._record_bytes
        with self._lock:
            self._check()
            try:
                if self._grow_bytes is not None and start + self._record_bytes > self._reserved:
                    self._grow(start + self._record_bytes, self._grow_bytes)
                self._put(record, start)
            except OSError:
                if self._descriptor >= 0:  # else it was closed meanwhile
                    raise

    def _check(self) -> None:
        """About 1 µs: the number may stand for a file of the user's by now."""
        same = identity(self._descriptor) == self._identity
        # Asked only now: a signal handler of the user's may fork or close in between.
        if self._descriptor >= 0 and not same:
            self._descriptor = -1
            raise OSError(errno.EBADF, "other code closed its file descriptor")

    def _put(self, content: bytes, start: int) -> None:
        if hasattr(os, "pwrite"):
            written = os.pwrite(self._descriptor, content, start)
        else:
            os.lseek(self._descriptor, start, os.SEEK_SET)
            written = os.write(self._descriptor, content)
        if written != len(content):
            raise OSError(errno.ENOSPC, f"only {written} of {len(content)} bytes were written")

    def _grow(self, needed: int, step: int) -> None:
        steps = -(-(needed - HEADER_BYTES) // step)
        self._reserve(min(self._end, HEADER_BYTES + steps * step))

    def _reserve(self, end: int) -> None:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._descriptor, self._reserved, end - self._reserved)
            else:
                os.ftruncate(self._descriptor, end)
        except OSError as bad:
            # Some file systems cannot: a full disk then shows at a write, as an error like any other.
            if bad.errno not in _NO_PREALLOCATION:
                raise
            os.ftruncate(self._descriptor, end)
        self._reserved = end

    def close(self) -> None:
        """Give the descriptor back; doing it twice is harmless."""
        if self._descriptor < 0:
            return
        with self._lock:  # nobody writes to a number that has become another file's
            self._give_descriptor_back()

    def _give_descriptor_back(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            close_ours(descriptor, self._identity)


def _leave_to_parent() -> None:
    """In a forked process: no writer here has a file any more. No lock is asked for: its owner may not be here."""
    for writer in list(_open_writers):
        writer._give_descriptor_back()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
