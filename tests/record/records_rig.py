"""Files of records that a test writes. Not a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jupyter_tfguard.record.record_writer import RecordWriter
from jupyter_tfguard.record.records import read_records

TYPES = {3: {"name": "event", "text": "json"}}


def opened(path: Path, **more: Any) -> RecordWriter:
    wanted: dict[str, Any] = {"name": "events", "record_bytes": 64, "capacity": 8, "types": TYPES}
    path.write_bytes(b"")
    return RecordWriter(path, **wanted | more)


def written(path: Path, count: int, **more: Any) -> bytes:
    writer = opened(path, **more)
    for number in range(1, count + 1):
        writer.write(3, b"%d" % number)
    writer.close()
    return path.read_bytes()


def numbers(content: bytes) -> list[int]:
    return [record.sequence for record in read_records(content).records]
