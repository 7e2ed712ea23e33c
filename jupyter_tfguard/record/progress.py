"""The newest value of something that changes often, the progress of a fit: two records that take turns, so that one
whole value is always there."""

from __future__ import annotations

import json
from typing import Any

from .record_writer import RecordWriter
from .records import RECORD_HEAD_BYTES, Record

PROGRESS = 5
TYPES = {PROGRESS: {"name": "progress", "text": "json"}}
RECORD_BYTES = 1024
CAPACITY = 2
TEXT_LIMIT_BYTES = RECORD_BYTES - RECORD_HEAD_BYTES


def write_progress(writer: RecordWriter, value: dict[str, Any]) -> None:
    """Put the value over the older of the two. Where there is no room for all of its ``logs``, the last are left out.

    Raises:
        ValueError: Its JSON is longer than `TEXT_LIMIT_BYTES` without them too; the one before stays.
        OSError: The system refused the write.
    """
    text = _json(value)
    while len(text) > TEXT_LIMIT_BYTES and (logs := value.get("logs")):
        value = value | {"logs": dict(list(logs.items())[:-1])}
        text = _json(value)
    writer.write(PROGRESS, text)


def _json(value: dict[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace")


def newest_progress(records: list[Record]) -> dict[str, Any] | None:
    """The newest whole value of these records, oldest first; None when nothing was written or both records are damaged."""
    for record in reversed(records):
        if record.type != PROGRESS:
            continue
        try:
            value = json.loads(record.payload)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None
