"""Numbers from TensorFlow's allocator dump and from the error that follows it: what was asked for, what was there.

Source: tensorflow tsl/framework/bfc_allocator.cc (the statistics are printed at each failed request), op_kernel.cc.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .log_lines import LogLine

# OOM when allocating tensor with shape[32,256,62,62] and type float on /job:.../device:GPU:0 by allocator GPU_0_bfc
_TENSOR = re.compile(
    r"OOM when allocating tensor (?:with|of) shape ?\[(?P<shape>[\d,]{1,100})\] and type (?P<type>\w{1,20})"
)
# Limit:                     40231108608
_STATISTIC = re.compile(
    r"^\s{0,80}(?P<name>Limit|InUse|LargestFreeBlock):\s{1,80}(?P<value>\d{1,18})\s*$"
)
_ITEM_BYTES = {
    "double": 8, "int64": 8, "uint64": 8, "complex64": 8, "complex128": 16, "float": 4, "int32": 4, "uint32": 4,
    "half": 2, "bfloat16": 2, "int16": 2, "uint16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip


@dataclass(frozen=True)
class AllocatorDump:
    """What the text tells; None is unknown.

    Attributes:
        shape: Of the tensor that found no room.
        asked_bytes: Its size.
        limit_bytes: Of the allocator.
        used_bytes: In use at that time.
        largest_free_bytes: The largest block that was free.
    """

    shape: tuple[int, ...] | None
    asked_bytes: int | None
    limit_bytes: int | None
    used_bytes: int | None
    largest_free_bytes: int | None

    @property
    def fragmented(self) -> bool:
        """True when enough was free in sum, and no block of it was large enough."""
        if self.asked_bytes is None or self.limit_bytes is None or self.used_bytes is None:
            return False
        free = self.limit_bytes - self.used_bytes
        block = self.largest_free_bytes
        return free > 2 * self.asked_bytes and (block is None or 0 < block < self.asked_bytes)


def allocator_dump(lines: Sequence[LogLine]) -> AllocatorDump:
    """The last dump in a text."""
    shape: tuple[int, ...] | None = None
    asked = None
    statistics: dict[str, int] = {}
    for line in lines:
        if found := _STATISTIC.match(line.message):
            statistics[found["name"]] = int(found["value"])
        elif shape is None and (tensor := _TENSOR.search(line.message)):
            shape = tuple(int(part) for part in tensor["shape"].split(",") if part)
            item = _ITEM_BYTES.get(tensor["type"])
            asked = math.prod(shape) * item if item else None
    return AllocatorDump(
        shape,
        asked,
        statistics.get("Limit"),
        statistics.get("InUse"),
        statistics.get("LargestFreeBlock"),
    )
