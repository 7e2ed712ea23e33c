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
# PyTorch, in its words of several years:
# (GPU 0; 7.80 GiB total capacity; 1.32 GiB already allocated; 5.12 MiB free; 1.33 GiB reserved in total by PyTorch)
# GPU 0 has a total capacity of 7.80 GiB of which 5.12 MiB is free. ... this process has 1.90 GiB memory in use.
_SIZE = r"(?P<{0}>[\d.]{{1,12}}) (?P<{0}_unit>[KMG]i?B)"
_OF_PYTORCH = re.compile(
    rf"{_SIZE.format('total')} total capacity; {_SIZE.format('own')} already allocated; {_SIZE.format('free')} free"
    rf"|total capac\w{{0,3}}ty of {_SIZE.format('total_now')} of which {_SIZE.format('free_now')} is free\."
    rf".{{0,300}}\bthis process has {_SIZE.format('own_now')} memory in use"
)
_STARVED_FRACTION = 0.1
_OWN_FRACTION = 0.25
_ROOMY_FRACTION = 0.5
_STARVED_MIB = 512
_MIB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}


def is_starved(line: LogLine) -> bool:
    """True for a line that shows a GPU with almost no free memory."""
    if "Memory" not in line.text and "memory" not in line.text:
        return False
    if found := _FREE.search(line.text):
        return _mib(found, "free") < _STARVED_FRACTION * _mib(found, "total")
    if "capac" in line.text and (found := _OF_PYTORCH.search(line.text)):
        now = "_now" if found["total"] is None else ""
        total, own, free = (_mib(found, f"{name}{now}") for name in ("total", "own", "free"))
        return free < _STARVED_FRACTION * total and own < _OWN_FRACTION * total
    if found := _CREATED.search(line.text):
        return int(found["size"]) < _STARVED_MIB
    return False


def _mib(found: re.Match[str], name: str) -> float:
    return float(found[name]) * _MIB[found[f"{name}_unit"][0]]


def roomy(lines: Iterable[LogLine]) -> tuple[int, int] | None:
    """Free and total bytes of the GPU, if the last numbers about it show that much was free."""
    found = [hit for line in lines if (hit := _USAGE.search(line.text))]
    free, total = (int(found[-1]["free"]), int(found[-1]["total"])) if found else (0, 0)
    return (free, total) if 0 < _ROOMY_FRACTION * total <= free else None
