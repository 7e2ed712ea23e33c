"""Writes files of records (records.py) from any thread or signal handler of one process.

One ``pwrite`` that does not cross a page writes a record, so after a kill the record is whole or absent. Files are not
memory-mapped: if a mapped file is truncated, SIGBUS ends the process. A file is open only during a write, which costs some
microseconds: user code may need all descriptors, or close those of others.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import threading
import time
import zlib
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
_NO_DESCRIPTOR = {errno.EMFILE, errno.ENFILE}
_WAITING_COUNT = 64
_FLAGS = (
    os.O_RDWR
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)

TypeTable = Mapping[int, Mapping[str, Any]]


class RecordWriter:
    """Writes records to an empty file. Threads and signal handlers may write at any time.

    A forked process writes nothing, whatever its parent's threads were doing at the fork.

    Args:
        path: The file.
        name: Name of the content, for the header.
        record_bytes: Size of a record, a power of two from 64 to 4096.
        capacity: Number of records in the ring.
        types: The header's entry for each record type.
        grow_bytes: Reserve disk space in steps of this size as the file fills; None: reserve all of it now.

    Raises:
        OSError: A system call failed; for instance, no space for the whole file.
        ValueError: The sizes are invalid, or `types` is too long for a header.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        record_bytes: int,
        capacity: int,
        types: TypeTable,
        grow_bytes: int | None = None,
    ) -> None:
        check_sizes(record_bytes, capacity)
        self._path = os.fspath(path)
        self._pid = os.getpid()
        self._closed = False
        self._record_bytes = record_bytes
        self._capacity = capacity
        self._end = HEADER_BYTES + capacity * record_bytes
        self._reserved = HEADER_BYTES
        self._grow_bytes = grow_bytes
        self._numbers = itertools.count(1)
        # Re-entrant: the user's signal handler may call us during a write.
        self._lock = threading.RLock()
        self._waiting: deque[tuple[int, bytes]] = deque(maxlen=_WAITING_COUNT)
        block = header_block(
            {
                "format": list(FORMAT),
                "name": name,
                "record_bytes": record_bytes,
                "capacity": capacity,
                "types": {str(number): dict(fields) for number, fields in types.items()},
                "created": time.time(),
            }
        )
        descriptor = os.open(self._path, _FLAGS)
        try:
            # Before the space is reserved: after a kill at any moment, the file is empty or has its header.
            _put(descriptor, block, 0)
            _put(descriptor, block, BLOCK_BYTES)
            if grow_bytes is None:
                self._reserve(descriptor, self._end)
        finally:
            os.close(descriptor)

    @property
    def payload_bytes(self) -> int:
        """Size of the longest payload."""
        return self._record_bytes - RECORD_HEAD_BYTES

    def next_sequences(self, count: int) -> int:
        """Reserve `count` consecutive sequence numbers and return the first."""
        while True:
            taken = [next(self._numbers) for _ in range(count)]
            # A signal handler or another thread may have written meanwhile. Unused numbers are allowed.
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
        """Write a record over the oldest one. Does nothing after close, and in a forked process.

        While no descriptor is free, records wait in memory for the next call.

        Args:
            type: Type of the payload.
            payload: At most :attr:`payload_bytes` bytes.
            sequence: Sequence number; None: the next one.
            monotonic, wall: Time of the record; None: now.

        Raises:
            OSError: The file was deleted, or the write failed.
            ValueError: The payload is too long.
        """
        if len(payload) > self.payload_bytes:
            raise ValueError(f"{len(payload)} bytes do not fit a record of {self._record_bytes}")
        # In a forked process, a thread that no longer exists may hold the lock.
        if self._closed or os.getpid() != self._pid:
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
        self._waiting.append((start, record))
        try:
            descriptor = os.open(self._path, _FLAGS)
        except OSError as bad:
            if bad.errno in _NO_DESCRIPTOR:
                return
            raise
        try:
            with self._lock, contextlib.suppress(IndexError):
                while True:
                    self._write_at(descriptor, *self._waiting.popleft())
        finally:
            os.close(descriptor)

    def _write_at(self, descriptor: int, start: int, record: bytes) -> None:
        if self._grow_bytes is not None and start + self._record_bytes > self._reserved:
            self._grow(descriptor, start + self._record_bytes, self._grow_bytes)
        _put(descriptor, record, start)

    def _grow(self, descriptor: int, needed: int, step: int) -> None:
        steps = -(-(needed - HEADER_BYTES) // step)
        self._reserve(descriptor, min(self._end, HEADER_BYTES + steps * step))

    def _reserve(self, descriptor: int, end: int) -> None:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, self._reserved, end - self._reserved)
            else:
                os.ftruncate(descriptor, end)
        except OSError as bad:
            # Some file systems cannot reserve space. A full disk is then an error of a later write.
            if bad.errno not in _NO_PREALLOCATION:
                raise
            os.ftruncate(descriptor, end)
        self._reserved = end

    def close(self) -> None:
        """Write nothing more. Idempotent."""
        self._closed = True


def _put(descriptor: int, content: bytes, start: int) -> None:
    if hasattr(os, "pwrite"):
        written = os.pwrite(descriptor, content, start)
    else:
        os.lseek(descriptor, start, os.SEEK_SET)
        written = os.write(descriptor, content)
    if written != len(content):
        raise OSError(errno.ENOSPC, f"only {written} of {len(content)} bytes were written")
