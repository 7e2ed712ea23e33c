"""Writes files of records (records.py) from any thread or signal handler of one process.

One ``pwrite`` that does not cross a page writes a record, so after a kill the record is whole or absent. Files are not
memory-mapped: if a mapped file is truncated, SIGBUS ends the process.
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
    """Writes records to an open, empty file. Threads and signal handlers may write at any time.

    A forked process writes nothing, whatever its parent's threads were doing at the fork.

    Args:
        descriptor: Open for reading and writing. The writer owns it from now on, unless the constructor raises.
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
        # Re-entrant: the user's signal handler may call us during a write.
        self._lock = threading.RLock()
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
        # Before the space is reserved: after a kill at any moment, the file is empty or has its header.
        self._put(block, 0)
        self._put(block, BLOCK_BYTES)
        if grow_bytes is None:
            self._reserve(self._end)
        _open_writers.add(self)

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

        Args:
            type: Type of the payload.
            payload: At most :attr:`payload_bytes` bytes.
            sequence: Sequence number; None: the next one.
            monotonic, wall: Time of the record; None: now.

        Raises:
            OSError: The write failed, or other code closed the descriptor. The latter is raised once.
            ValueError: The payload is too long.
        """
        if len(payload) > self.payload_bytes:
            raise ValueError(f"{len(payload)} bytes do not fit a record of {self._record_bytes}")
        if (
            self._descriptor < 0
        ):  # in a forked process, a thread that no longer exists may hold the lock
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
        """Check that the descriptor number has not been reused. Costs about 1 µs."""
        same = identity(self._descriptor) == self._identity
        # Checked last: the user's signal handler may fork or close meanwhile.
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
            # Some file systems cannot reserve space. A full disk is then an error of a later write.
            if bad.errno not in _NO_PREALLOCATION:
                raise
            os.ftruncate(self._descriptor, end)
        self._reserved = end

    def close(self) -> None:
        """Close the descriptor. Idempotent."""
        if self._descriptor < 0:
            return
        with self._lock:  # else a write could go to a reused descriptor number
            self._give_descriptor_back()

    def _give_descriptor_back(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            close_ours(descriptor, self._identity)


def _close_in_child() -> None:
    """In a forked process: close the files of all writers. Takes no lock, because its owner may not exist here."""
    for writer in list(_open_writers):
        writer._give_descriptor_back()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
