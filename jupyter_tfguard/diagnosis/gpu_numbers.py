"""The numbers that a message about GPU memory gives: what was asked for, what was free, who held how much."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..units import human_bytes
from .line_sizes import size_bytes
from .log_lines import LogLine

_SIZE = r"([\d.]{1,18} ?(?:[KMGT]i?B|[KMGT]|bytes)?)"
# Tried to allocate 3.91 GiB      Failed to allocate request for 32.00MiB      Requested memory: 2516582400      allocating 4821.33 MiB on device 0
_ASKED = re.compile(
    rf"(?:Tried to allocate|Requested memory:|[Aa]llocating|trying to allocate|ailed to allocate(?: request for)?) {_SIZE}(?![\d.])"
)
# total capacity of 23.98 GiB of which 1.02 GiB is free      11.17 GiB total capacity; 10.6 GiB already allocated; 45.19 MiB free
_TOTAL = re.compile(rf"(?:total capacity of {_SIZE}|{_SIZE} total capacity|max allowed: {_SIZE})")
_FREE = re.compile(rf"(?:of which {_SIZE} is free|{_SIZE} free\b|Free memory: {_SIZE})")
# Used 18.94G of 15.75G hbm
_HBM = re.compile(r"Used (?P<used>[\d.]{1,12}[KMGT]) of (?P<total>[\d.]{1,12}[KMGT]) hbm")
# Process 3519 has 14.54 GiB memory in use
_HOLDER = re.compile(r"Process (\d{1,10}) has ([\d.]{1,12} [KMGT]iB) memory in use")
# 613.51 MiB is reserved by PyTorch but unallocated
_SPARE = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")
_LINES = 3


@dataclass(frozen=True)
class GpuNumbers:
    """Bytes; None is unknown.

    Attributes:
        asked: The request.
        free: Free memory of the card at that time.
        total: Memory of the card, or what the program may use of it.
        needed: What a compiled program needs in total.
        spare: What PyTorch had reserved and not given out.
        holders: (process id, bytes) of the processes that the message lists. In a container it may be this one.
    """

    asked: int | None = None
    free: int | None = None
    total: int | None = None
    needed: int | None = None
    spare: int | None = None
    holders: tuple[tuple[int, int], ...] = ()

    @property
    def text(self) -> str:
        """``3.91 GiB requested, 1.02 GiB of 24.0 GiB free``; empty when nothing is known."""
        if self.needed is not None and self.total is not None:
            return f"{human_bytes(self.needed)} needed, {human_bytes(self.total)} there"
        parts = [f"{human_bytes(self.asked)} requested"] if self.asked else []
        if self.free is not None:
            of = f" of {human_bytes(self.total)}" if self.total else ""
            parts.append(f"{human_bytes(self.free)}{of} free")
        elif self.total and parts:
            parts.append(f"{human_bytes(self.total)} in total")
        return ", ".join(parts)


def gpu_numbers(lines: Sequence[LogLine], index: int) -> GpuNumbers:
    """The numbers in a message and in the lines after it."""
    text = " ".join(line.text[:1500] for line in lines[index : index + _LINES])
    if (hbm := _HBM.search(text)) is not None:
        return GpuNumbers(needed=size_bytes(hbm["used"]), total=size_bytes(hbm["total"]))
    holders = tuple((int(pid), size_bytes(size) or 0) for pid, size in _HOLDER.findall(text))
    asked, free, total, spare = (
        _first(pattern, text) for pattern in (_ASKED, _FREE, _TOTAL, _SPARE)
    )
    return GpuNumbers(asked, free, total, None, spare, holders)


def _first(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    if found is None:
        return None
    return size_bytes(next(group for group in found.groups() if group).removesuffix(" bytes"))
