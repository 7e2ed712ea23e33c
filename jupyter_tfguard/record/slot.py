"""The newest value of something that changes often (the progress of a fit), in one small preallocated file.

Two records of 1024 bytes take turns, so that one whole record is always there: length (u32), sequence (u64), CRC-32 of
sequence and text (u32), JSON text, zeros. Little-endian.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from typing import Any

SLOT_BYTES = 1024
_HEAD = struct.Struct("<IQI")
_SEQUENCE = struct.Struct("<Q")


class SlotWriter:
    """Keeps the newest value. The writer owns the descriptor.

    Raises:
        OSError: No space for the file.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._sequence = 0
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, 2 * SLOT_BYTES)

    def write(self, value: dict[str, Any]) -> None:
        """Replace the older of the two records.

        Raises:
            ValueError: The value is longer than a record.
            OSError: The system refused the write.
        """
        self._sequence += 1
        text = json.dumps(value, default=str).encode()
        if _HEAD.size + len(text) > SLOT_BYTES:
            raise ValueError(f"{len(text)} bytes do not fit a record of {SLOT_BYTES}")
        crc = zlib.crc32(_SEQUENCE.pack(self._sequence) + text)
        row = (_HEAD.pack(len(text), self._sequence, crc) + text).ljust(SLOT_BYTES, b"\0")
        os.pwrite(self._descriptor, row, (self._sequence % 2) * SLOT_BYTES)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)


def read_slot(content: bytes) -> dict[str, Any] | None:
    """The newest whole value; None when nothing was written or both records are damaged."""
    best: tuple[int, dict[str, Any]] | None = None
    for start in (0, SLOT_BYTES):
        row = content[start : start + SLOT_BYTES]
        if len(row) < _HEAD.size:
            continue
        length, sequence, crc = _HEAD.unpack_from(row)
        text = row[_HEAD.size : _HEAD.size + length]
        if not sequence or zlib.crc32(_SEQUENCE.pack(sequence) + text) != crc:
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and (best is None or sequence > best[0]):
            best = (sequence, value)
    return best[1] if best else None
