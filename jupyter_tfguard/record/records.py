"""Records on disk: one ring of fixed-size records in one file, the oldest overwritten by the newest. ``FORMAT.md`` is the
specification; this module is all of it that every file of records shares. What a record means is told elsewhere:
series.py, journal.py, progress.py.

A record is written by one ``pwrite`` that does not cross a page, so a kill leaves it whole or absent. Nothing is mapped
into memory: a file that somebody cuts short would end the process with SIGBUS.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import struct
import threading
import time
import weakref
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

from ..errors import RecordTooNew, RecordUnreadable

FORMAT = (2, 0)
BLOCK_BYTES = 4096
HEADER_BYTES = 2 * BLOCK_BYTES
SMALLEST_RECORD_BYTES = 64
LARGEST_RECORD_BYTES = 4096
MAXIMUM_CAPACITY = 1 << 14
_MAGIC = b"TFGRECS\n"
_BLOCK = struct.Struct("<8sII")
# crc | type, length, sequence, monotonic seconds, Unix seconds
_CRC = struct.Struct("<I")
_HEAD = struct.Struct("<HHQdd")
RECORD_HEAD_BYTES = _CRC.size + _HEAD.size
_NO_PREALLOCATION = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}

TypeTable = Mapping[int, Mapping[str, Any]]


class Record(NamedTuple):
    """One intact record.

    Attributes:
        sequence: Rises with each record of one writer, first 1; orders records when clocks jump.
        monotonic: ``time.monotonic()`` of the writer, seconds; comparable within one boot.
        time: Wall clock, Unix seconds UTC; for people.
        type: What the payload is; see the header's ``types``.
        payload: The bytes of the record's own.
    """

    sequence: int
    monotonic: float
    time: float
    type: int
    payload: bytes


class RecordFile(NamedTuple):
    """A file of records read back.

    Attributes:
        header: The JSON of its header, as found; keys that this version does not know included.
        records: The intact records by sequence, oldest first, types that this version does not know included.
    """

    header: dict[str, Any]
    records: list[Record]

    def of_type(self, number: int) -> Iterator[Record]:
        """The records of one type."""
        return (record for record in self.records if record.type == number)

    def type_named(self, number: int) -> dict[str, Any]:
        """What the header says of a type; empty when it says nothing that makes sense."""
        types = self.header.get("types")
        found = types.get(str(number)) if isinstance(types, dict) else None
        return found if isinstance(found, dict) else {}


def record_bytes_for(payload_bytes: int) -> int:
    """Size of a record that holds so large a payload: a power of two."""
    needed = max(SMALLEST_RECORD_BYTES, RECORD_HEAD_BYTES + payload_bytes)
    return 1 << (needed - 1).bit_length()


# --- writing

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
        _check_sizes(record_bytes, capacity)
        self._descriptor = descriptor
        self._record_bytes = record_bytes
        self._capacity = capacity
        self._end = HEADER_BYTES + capacity * record_bytes
        self._reserved = HEADER_BYTES
        self._grow_bytes = grow_bytes
        self._numbers = itertools.count(1)
        # Re-entrant: a signal handler of the user's may come to us inside a write.
        self._lock = threading.RLock()
        block = _header_block(
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
            OSError: The system refused the write.
            ValueError: The payload is too long.
        """
        if len(payload) > self.payload_bytes:
            raise ValueError(f"{len(payload)} bytes do not fit a record of {self._record_bytes}")
        if (
            self._descriptor < 0
        ):  # and in a forked process the lock may be held by a thread that is not there
            return
        body = (
            _HEAD.pack(
                type,
                len(payload),
                number := next(self._numbers) if sequence is None else sequence,
                time.monotonic() if monotonic is None else monotonic,
                time.time() if wall is None else wall,
            )
            + payload
        )
        record = (_CRC.pack(zlib.crc32(body)) + body).ljust(self._record_bytes, b"\0")
        start = HEADER_BYTES + (number - 1) % self._capacity * self._record_bytes
        with self._lock:
            try:
                if self._grow_bytes is not None and start + self._record_bytes > self._reserved:
                    self._grow(start + self._record_bytes, self._grow_bytes)
                self._put(record, start)
            except OSError:
                if self._descriptor >= 0:  # else it was closed meanwhile
                    raise

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
            os.close(descriptor)


def _leave_to_parent() -> None:
    """In a forked process: no writer here has a file any more. No lock is asked for: its owner may not be here."""
    for writer in list(_open_writers):
        writer._give_descriptor_back()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _check_sizes(record_bytes: int, capacity: int) -> None:
    if (
        record_bytes & (record_bytes - 1)
        or not SMALLEST_RECORD_BYTES <= record_bytes <= LARGEST_RECORD_BYTES
    ):
        raise ValueError(f"a record of {record_bytes} bytes is no power of two from 64 to 4096")
    if not 0 < capacity <= MAXIMUM_CAPACITY:
        raise ValueError(f"a ring of {capacity} records is not between 1 and {MAXIMUM_CAPACITY}")


def _header_block(header: dict[str, Any]) -> bytes:
    text = json.dumps(header).encode()
    if _BLOCK.size + len(text) > BLOCK_BYTES:
        raise ValueError(f"{len(text)} bytes of JSON do not fit the header of a file of records")
    return (_BLOCK.pack(_MAGIC, len(text), zlib.crc32(text)) + text).ljust(BLOCK_BYTES, b"\0")


# --- reading


class RecordHeader(NamedTuple):
    """What a reader needs to find the records; sizes are within the bounds of the format."""

    json: dict[str, Any]
    record_bytes: int
    capacity: int

    @property
    def file_bytes(self) -> int:
        """Size of the whole file, once it is full."""
        return HEADER_BYTES + self.capacity * self.record_bytes


def read_header(content: bytes, what: str = "The file of records") -> RecordHeader:
    """The header of a file of records, from whichever of its two copies is intact.

    Args:
        content: At least the first 8192 bytes of the file, or all there are.
        what: Names the file in errors.

    Raises:
        RecordUnreadable: Both copies are damaged, or make no sense.
        RecordTooNew: A newer major format.
    """
    header = _block_json(content[:BLOCK_BYTES])
    if header is None:
        header = _block_json(content[BLOCK_BYTES:HEADER_BYTES])
    if header is None:
        raise RecordUnreadable(f"{what} has no intact header.")
    try:
        major = major_of(header)
        if major is None:
            raise ValueError("it names no format")
        if major > FORMAT[0]:
            raise RecordTooNew(what, major, FORMAT[0])
        if major < FORMAT[0]:
            raise RecordUnreadable(f"{what} has format {major}, which was never released.")
        record_bytes, capacity = _integer(header["record_bytes"]), _integer(header["capacity"])
        _check_sizes(record_bytes, capacity)
    except (ValueError, KeyError) as bad:
        raise RecordUnreadable(f"The header of {what.lower()} makes no sense: {bad}") from bad
    return RecordHeader(header, record_bytes, capacity)


def major_of(told: object) -> int | None:
    """The major version that a header, a bundle or a report names in ``format``; None when it names none."""
    version = told.get("format") if isinstance(told, dict) else None
    if not isinstance(version, list) or not version:
        return None
    return version[0] if _is_number(version[0]) else None


def _integer(value: object) -> int:
    if not _is_number(value):
        raise ValueError(f"{str(value)[:40]!r} is no size")
    return value


def _is_number(value: object) -> TypeGuard[int]:
    """True for 32 bits; ``true``, ``2.0`` and ``"2"`` are none, though another reader may take them for one."""
    return type(value) is int and 0 <= value < 1 << 32


def _block_json(block: bytes) -> dict[str, Any] | None:
    if len(block) < _BLOCK.size:
        return None
    magic, length, crc = _BLOCK.unpack_from(block)
    text = block[_BLOCK.size : _BLOCK.size + length]
    if magic != _MAGIC or length > BLOCK_BYTES - _BLOCK.size or zlib.crc32(text) != crc:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def intact_records(content: bytes, record_bytes: int) -> Iterator[Record]:
    """The intact records among whole ones that lie one after the other, in that order."""
    longest = record_bytes - RECORD_HEAD_BYTES
    for start in range(0, len(content) - record_bytes + 1, record_bytes):
        head = start + _CRC.size
        type, length, sequence, monotonic, wall = _HEAD.unpack_from(content, head)
        if not type or not sequence or length > longest:
            continue
        body = content[head : head + _HEAD.size + length]
        if zlib.crc32(body) == _CRC.unpack_from(content, start)[0]:
            yield Record(sequence, monotonic, wall, type, body[_HEAD.size :])


def read_records(content: bytes, what: str = "The file of records") -> RecordFile:
    """The header and the intact records of a file; torn, damaged and empty ones are left out.

    Args:
        content: The file, as much of it as there is.
        what: Names the file in errors.

    Raises:
        RecordUnreadable: Both copies of the header are damaged, or make no sense.
        RecordTooNew: A newer major format.
    """
    header = read_header(content, what)
    found = intact_records(content[HEADER_BYTES : header.file_bytes], header.record_bytes)
    by_sequence = {record.sequence: record for record in found}
    return RecordFile(header.json, [by_sequence[number] for number in sorted(by_sequence)])
