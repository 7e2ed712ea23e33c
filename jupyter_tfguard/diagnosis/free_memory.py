"""Lines that show how much memory of a GPU was free."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .log_lines import LogLine

# "totalMemory: 11.17GiB freeMemory: 163.62MiB", TensorFlow 1; others use a device that has less than this left.
_FREE = re.compile(
    r"totalMemory: (?P<total>[\d.]{1,12})(?P<total_unit>[KMG]i?B).{0,10}freeMemory: (?P<free>[\d.]{1,12})(?P<free_unit>[KMG]i?B)"
)
# "Created device /job:.../device:GPU:0 with 151 MB memory", of all releases
_CREATED = re.compile(
    r"Created (?:TensorFlow )?device .{0,200}device:GPU:\d{1,3} with (?P<size>\d{1,8}) MB memory"
)
# "Memory usage: 8019231744 bytes free, 8361738240 bytes total." after a CUDA library could not start
_USAGE = re.compile(r"Memory usage: (?P<free>\d{1,18}) bytes free, (?P<total>\d{1,18}) bytes total")
_STARVED_FRACTION = 0.1
_ROOMY_FRACTION = 0.5
_STARVED_MIB = 512
_MIB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}


def is_starved(line: LogLine) -> bool:
    """True for a line that shows a GPU with almost no free memory."""
    if "Memory" not in line.text and "memory" not in line.text:
        return False
    if found := _FREE.search(line.text):
        total, free = (
            float(found[name]) * _MIB[found[f"{name}_unit"][0]] for name in ("total", "free")
        )
        return total > 0 and free < _STARVED_FRACTION * total
    if found := _CREATED.search(line.text):
        return int(found["size"]) < _STARVED_MIB
    return False


def roomy(lines: Iterable[LogLine]) -> tuple[int, int] | None:
    """Free and total bytes of the GPU, if the last numbers about it show that much was free."""
    found = [hit for line in lines if (hit := _USAGE.search(line.text))]
    free, total = (int(found[-1]["free"]), int(found[-1]["total"])) if found else (0, 0)
    return (free, total) if 0 < _ROOMY_FRACTION * total <= free else None
