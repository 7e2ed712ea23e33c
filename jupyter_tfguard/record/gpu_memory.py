"""What TensorFlow's allocators say of themselves now: two records that take turns, so that one whole value is always there.

The value is ``{"devices": [{"device": "GPU:0", "in_use_bytes", "peak_bytes"}]}``. The file is made at the first of them: a
kernel that uses no GPU has none.
"""

from __future__ import annotations

import json
from typing import Any

from .record_writer import RecordWriter
from .records import Record

GPU_MEMORY = 6
TYPES = {GPU_MEMORY: {"name": "gpu memory", "text": "json"}}
RECORD_BYTES = 1024
CAPACITY = 2
# As many as fit into a record, whatever their numbers are; no machine of today has more.
DEVICES_LIMIT = 8


def write_gpu_memory(writer: RecordWriter, devices: list[dict[str, Any]]) -> None:
    """Put the newest numbers over the older of the two records; devices beyond the eighth are left out.

    Raises:
        OSError: The system refused the write.
    """
    text = json.dumps({"devices": devices[:DEVICES_LIMIT]}, separators=(",", ":"))
    writer.write(GPU_MEMORY, text.encode())


def newest_gpu_memory(records: list[Record]) -> list[dict[str, Any]] | None:
    """The devices of the newest whole value among these records, oldest first; None when there is none.

    Each is typed and named once; a number that is none is None.
    """
    for record in reversed(records):
        if record.type != GPU_MEMORY:
            continue
        try:
            value = json.loads(record.payload)
        except (ValueError, RecursionError):
            continue
        devices = value.get("devices") if isinstance(value, dict) else None
        if isinstance(devices, list):
            named = {d["device"]: d for d in devices[:DEVICES_LIMIT] if is_device(d)}
            return [
                {"device": name, "in_use_bytes": size(d.get("in_use_bytes"))}
                | {"peak_bytes": size(d.get("peak_bytes"))}
                for name, d in named.items()
            ]
    return None


def is_device(value: object) -> bool:
    """True for an object with the name of a GPU device, such as ``GPU:0``."""
    name = value.get("device") if isinstance(value, dict) else None
    return (
        isinstance(name, str)
        and name[:4] == "GPU:"
        and name.isascii()
        and name[4:].isdecimal()
        and len(name) < 9
    )


def size(value: object) -> int | None:
    """A number of bytes that can be; None for anything else."""
    return value if type(value) is int and 0 <= value < 1 << 53 else None
