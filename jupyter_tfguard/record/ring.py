"""Samples on disk: aligned fixed-size rows in a preallocated file, the oldest row overwritten by the newest.

Layout of the file, little-endian: one header block of 4096 bytes, then `capacity` rows of `row_bytes` each.

* header block: magic ``TFGRING1`` (8 bytes), length of the JSON text (u32), CRC-32 of it (u32), the JSON text:
  ``{"format": [major, minor], "columns": [{"name", "unit"}], "row_bytes", "capacity", "created"}``.
* row: sequence (u64, first row 1), monotonic seconds (f64), Unix seconds (f64), one f64 per column (NaN = unknown),
  CRC-32 (zlib) of all of these (u32), zeros up to a power of two.

A row is written by one ``pwrite`` within a page, so a kill leaves it whole or absent; the CRC shows the rest.
"""

from __future__ import annotations

import json
import math
import os
import struct
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import RecordTooNew, RecordUnreadable
from ..metrics import Metric, Sample

FORMAT = (1, 0)
HEADER_BYTES = 4096
MAXIMUM_CAPACITY = 1 << 16
_MAGIC = b"TFGRING1"
_HEAD = struct.Struct("<8sII")
_CRC = struct.Struct("<I")


@dataclass(frozen=True)
class RowLayout:
    """How one sample lies in the ring file; the module tells the bytes."""

    columns: tuple[str, ...]

    @property
    def _packer(self) -> struct.Struct:
        return struct.Struct(f"<Qdd{len(self.columns)}d")

    @property
    def row_bytes(self) -> int:
        """Size of a row: the next power of two, at most a page."""
        return 1 << (self._packer.size + _CRC.size - 1).bit_length()

    def pack(self, sample: Sample) -> bytes:
        """The sample as one row; what the sample does not know becomes NaN."""
        numbers = (sample.values.get(name, math.nan) for name in self.columns)
        body = self._packer.pack(sample.sequence, sample.monotonic, sample.time, *numbers)
        return (body + _CRC.pack(zlib.crc32(body))).ljust(self.row_bytes, b"\0")

    def unpack(self, row: bytes) -> Sample | None:
        """Read one row; None if it was never written or a kill tore it, which its CRC shows."""
        size = self._packer.size
        if len(row) < size + _CRC.size:
            return None
        body = row[:size]
        if _CRC.unpack_from(row, size)[0] != zlib.crc32(body):
            return None
        sequence, monotonic, wall, *numbers = self._packer.unpack(body)
        if sequence == 0:
            return None
        known = {n: v for n, v in zip(self.columns, numbers, strict=True) if not math.isnan(v)}
        return Sample(sequence, monotonic, wall, known)


class RingWriter:
    """Writes samples into an open, empty file of its own.

    Args:
        descriptor: Open for writing; the writer owns it from here on.
        metrics: The columns.
        capacity: Rows kept.

    Raises:
        OSError: No space for the whole file now; better now than at the last sample.
    """

    def __init__(self, descriptor: int, metrics: Sequence[Metric], capacity: int) -> None:
        self._descriptor = descriptor
        self._layout = RowLayout(tuple(metric.name for metric in metrics))
        self._capacity = capacity
        size = HEADER_BYTES + capacity * self._layout.row_bytes
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.ftruncate(descriptor, size)
        os.pwrite(descriptor, self._header(metrics), 0)

    def _header(self, metrics: Sequence[Metric]) -> bytes:
        text = json.dumps(
            {
                "format": FORMAT,
                "columns": [{"name": m.name, "unit": m.unit.value} for m in metrics],
                "row_bytes": self._layout.row_bytes,
                "capacity": self._capacity,
                "created": time.time(),
            }
        ).encode()
        if _HEAD.size + len(text) > HEADER_BYTES:
            raise ValueError(f"{len(metrics)} columns do not fit the header of a ring")
        return (_HEAD.pack(_MAGIC, len(text), zlib.crc32(text)) + text).ljust(HEADER_BYTES, b"\0")

    def write(self, sample: Sample) -> None:
        """Put the sample over the oldest row.

        Raises:
            OSError: The system refused the write.
        """
        slot = (sample.sequence - 1) % self._capacity
        row = self._layout.pack(sample)
        os.pwrite(self._descriptor, row, HEADER_BYTES + slot * self._layout.row_bytes)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)


def read_ring(content: bytes) -> list[Sample]:
    """The intact samples of a ring file, oldest first; torn and empty rows are left out.

    Raises:
        RecordUnreadable: The header is damaged.
        RecordTooNew: A newer major format.
    """
    if len(content) < HEADER_BYTES:
        raise RecordUnreadable("The file of samples is shorter than its header.")
    magic, length, crc = _HEAD.unpack_from(content)
    text = content[_HEAD.size : _HEAD.size + length]
    if magic != _MAGIC or length > HEADER_BYTES - _HEAD.size or zlib.crc32(text) != crc:
        raise RecordUnreadable("The header of the file of samples is damaged.")
    try:
        header = json.loads(text)
        major = int(header["format"][0])
        if major > FORMAT[0]:
            raise RecordTooNew("The file of samples", major, FORMAT[0])
        layout = RowLayout(tuple(str(column["name"]) for column in header["columns"]))
        capacity = int(header["capacity"])
    except (ValueError, KeyError, TypeError, IndexError) as bad:
        raise RecordUnreadable(f"The header of the file of samples makes no sense: {bad}") from bad
    size = layout.row_bytes
    rows = min(capacity, MAXIMUM_CAPACITY, (len(content) - HEADER_BYTES) // size)
    starts = range(HEADER_BYTES, HEADER_BYTES + rows * size, size)
    found = (layout.unpack(content[start : start + size]) for start in starts)
    return sorted((s for s in found if s is not None), key=lambda sample: sample.sequence)
