"""Files that keep the newest value: two records written in turn, so one of them is always whole.

There are two such files: the progress of a fit, and the statistics of TensorFlow's allocators as ``{"devices":
[{"device": "GPU:0", "in_use_bytes", "peak_bytes"}]}``. The second is created with its first value, so a kernel that
uses no GPU has no such file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ..decode import dict_of, json_object, size_of
from .record_writer import RecordWriter
from .records import RECORD_HEAD_BYTES, Record

PROGRESS = 5
GPU_MEMORY = 6
PROGRESS_TYPES = {PROGRESS: {"name": "progress", "text": "json"}}
GPU_MEMORY_TYPES = {GPU_MEMORY: {"name": "gpu memory", "text": "json"}}
RECORD_BYTES = 1024
CAPACITY = 2
TEXT_LIMIT_BYTES = RECORD_BYTES - RECORD_HEAD_BYTES
# As many as fit into a record, whatever their values. No machine has more today.
DEVICES_LIMIT = 8


def write_progress(writer: RecordWriter, value: dict[str, Any]) -> None:
    """Write the value over the older record. If its ``logs`` do not all fit, the last ones are left out.

    Raises:
        ValueError: The JSON is longer than `TEXT_LIMIT_BYTES` even without ``logs``. The previous value stays.
        OSError: The write failed.
    """
    text = _json(value)
    while len(text) > TEXT_LIMIT_BYTES and (logs := value.get("logs")):
        value = value | {"logs": dict(list(logs.items())[:-1])}
        text = _json(value)
    writer.write(PROGRESS, text)


def _json(value: dict[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace")


def write_gpu_memory(writer: RecordWriter, devices: list[dict[str, Any]]) -> None:
    """Write the values over the older record. Devices after the eighth are left out.

    Raises:
        OSError: The write failed.
    """
    text = json.dumps({"devices": devices[:DEVICES_LIMIT]}, separators=(",", ":"))
    writer.write(GPU_MEMORY, text.encode())


def newest_progress(records: list[Record]) -> dict[str, Any] | None:
    """The newest intact value; None if there is none. `records` are ordered oldest first."""
    return next(_values(records, PROGRESS), None)


def newest_gpu_memory(records: list[Record]) -> list[dict[str, Any]] | None:
    """The devices of the newest intact value; None if there is none. `records` are ordered oldest first.

    Each device appears once. An invalid number is None.
    """
    for value in _values(records, GPU_MEMORY):
        devices = value.get("devices")
        if isinstance(devices, list):
            named = {d["device"]: d for d in devices[:DEVICES_LIMIT] if is_device(d)}
            return [
                {"device": name, "in_use_bytes": size_of(d.get("in_use_bytes"))}
                | {"peak_bytes": size_of(d.get("peak_bytes"))}
                for name, d in named.items()
            ]
    return None


def _values(records: list[Record], number: int) -> Iterator[dict[str, Any]]:
    """The JSON objects in records of one type, newest first."""
    for record in reversed(records):
        if record.type == number:
            value = json_object(record.payload)
            if value is not None:
                yield value


def is_device(value: object) -> bool:
    """True for an object that names a GPU device, such as ``GPU:0``."""
    name = dict_of(value).get("device")
    return isinstance(name, str) and re.fullmatch(r"GPU:[0-9]{1,4}", name) is not None
