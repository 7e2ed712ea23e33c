"""A file of records: a ring of fixed-size records, in which the newest overwrites the oldest.

This module covers the byte layout and reading; ``FORMAT.md`` is the specification. record_writer.py writes the file.
series.py, journal.py and newest.py define the payloads.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeGuard

from ..decode import dict_of, json_object
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
RECORD_CRC = struct.Struct("<I")
RECORD_HEAD = struct.Struct("<HHQdd")
RECORD_HEAD_BYTES = RECORD_CRC.size + RECORD_HEAD.size


class Record(NamedTuple):
    """One intact record.

    Attributes:
        sequence: Increases with each record of one writer, from 1; gives the order even if clocks jump.
        monotonic: ``time.monotonic()`` of the writer, in seconds; comparable within one boot.
        time: Wall clock, Unix seconds UTC; for display.
        type: Type of the payload; see the header's ``types``.
        payload: The content of the record.
    """

    sequence: int
    monotonic: float
    time: float
    type: int
    payload: bytes


class RecordFile(NamedTuple):
    """The content of a file of records.

    Attributes:
        header: The JSON of the header, with keys unknown to this version.
        records: The intact records by sequence, oldest first, with types unknown to this version.
    """

    header: dict[str, Any]
    records: list[Record]

    def of_type(self, number: int) -> Iterator[Record]:
        """The records of one type."""
        return (record for record in self.records if record.type == number)

    def type_named(self, number: int) -> dict[str, Any]:
        """The header's entry for a type; empty if it is missing or invalid."""
        return dict_of(dict_of(self.header.get("types")).get(str(number)))


def record_bytes_for(payload_bytes: int) -> int:
    """Record size that fits a payload of this size: a power of two."""
    needed = max(SMALLEST_RECORD_BYTES, RECORD_HEAD_BYTES + payload_bytes)
    return 1 << (needed - 1).bit_length()


def check_sizes(record_bytes: int, capacity: int) -> None:
    """Raise ValueError for sizes that the format does not allow."""
    if (
        record_bytes & (record_bytes - 1)
        or not SMALLEST_RECORD_BYTES <= record_bytes <= LARGEST_RECORD_BYTES
    ):
        raise ValueError(f"a record of {record_bytes} bytes is no power of two from 64 to 4096")
    if not 0 < capacity <= MAXIMUM_CAPACITY:
        raise ValueError(f"a ring of {capacity} records is not between 1 and {MAXIMUM_CAPACITY}")


def header_block(header: dict[str, Any]) -> bytes:
    """One copy of the header. Raises ValueError if the JSON does not fit."""
    text = json.dumps(header).encode()
    if _BLOCK.size + len(text) > BLOCK_BYTES:
        raise ValueError(f"{len(text)} bytes of JSON do not fit the header of a file of records")
    return (_BLOCK.pack(_MAGIC, len(text), zlib.crc32(text)) + text).ljust(BLOCK_BYTES, b"\0")


class RecordHeader(NamedTuple):
    """The header and what a reader needs to find the records. The sizes are checked."""

    json: dict[str, Any]
    record_bytes: int
    capacity: int

    @property
    def file_bytes(self) -> int:
        """Size of the full file."""
        return HEADER_BYTES + self.capacity * self.record_bytes


def read_header(content: bytes, what: str = "The file of records") -> RecordHeader:
    """The header of a file of records, from the first intact copy of two.

    Args:
        content: At least the first 8192 bytes, or the whole file if it is shorter.
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
            raise ValueError("it has no format number")
        if major > FORMAT[0]:
            raise RecordTooNew(what, major, FORMAT[0])
        if major < FORMAT[0]:
            raise RecordUnreadable(f"{what} has format {major}, which was never released.")
        record_bytes, capacity = _integer(header["record_bytes"]), _integer(header["capacity"])
        check_sizes(record_bytes, capacity)
    except (ValueError, KeyError) as bad:
        raise RecordUnreadable(f"The header of {what.lower()} is invalid: {bad}") from bad
    return RecordHeader(header, record_bytes, capacity)


def major_of(declared: object) -> int | None:
    """The major version in ``format`` of a header, a bundle or a report; None if there is none."""
    version = dict_of(declared).get("format")
    if not isinstance(version, list) or not version:
        return None
    return version[0] if _is_number(version[0]) else None


def _integer(value: object) -> int:
    if not _is_number(value):
        raise ValueError(f"{str(value)[:40]!r} is no size")
    return value


def _is_number(value: object) -> TypeGuard[int]:
    """True for an unsigned 32-bit integer. ``true``, ``2.0`` and ``"2"`` are not accepted: readers differ on them."""
    return type(value) is int and 0 <= value < 1 << 32


def _block_json(block: bytes) -> dict[str, Any] | None:
    if len(block) < _BLOCK.size:
        return None
    magic, length, crc = _BLOCK.unpack_from(block)
    text = block[_BLOCK.size : _BLOCK.size + length]
    if magic != _MAGIC or length > BLOCK_BYTES - _BLOCK.size or zlib.crc32(text) != crc:
        return None
    return json_object(text)


def intact_records(content: bytes, record_bytes: int, *, after: int = 0) -> Iterator[Record]:
    """The intact records in a run of whole records, in that order; only sequences above `after`."""
    longest = record_bytes - RECORD_HEAD_BYTES
    for start in range(0, len(content) - record_bytes + 1, record_bytes):
        head = start + RECORD_CRC.size
        type, length, sequence, monotonic, wall = RECORD_HEAD.unpack_from(content, head)
        if not type or sequence <= after or length > longest:
            continue
        body = content[head : head + RECORD_HEAD.size + length]
        if zlib.crc32(body) == RECORD_CRC.unpack_from(content, start)[0]:
            yield Record(sequence, monotonic, wall, type, body[RECORD_HEAD.size :])


def read_records(content: bytes, what: str = "The file of records") -> RecordFile:
    """The header and the intact records of a file. Torn, damaged and empty records are skipped.

    Args:
        content: The file, which may be truncated.
        what: Names the file in errors.

    Raises:
        RecordUnreadable: Both copies of the header are damaged, or make no sense.
        RecordTooNew: A newer major format.
    """
    header = read_header(content, what)
    found = intact_records(content[HEADER_BYTES : header.file_bytes], header.record_bytes)
    by_sequence = {record.sequence: record for record in found}
    return RecordFile(header.json, [by_sequence[number] for number in sorted(by_sequence)])
