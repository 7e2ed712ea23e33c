"""The report that TensorFlow's allocator logs when a GPU memory request fails: requested, free and used memory.

The BFC allocator takes regions of memory from the card and splits them into blocks. Free memory has three parts:

* Free blocks inside the regions. Only these can be fragmented: enough in total, but each one too small.
* Memory below the allocator's limit that it has not taken from the card. It tries to take this memory before it fails.
  If that would have been enough, the card refused the request because other processes hold the memory.
* Memory of the card above the limit. The allocator knows nothing about it.

The asynchronous allocator (``TF_GPU_ALLOCATOR=cuda_malloc_async``) leaves the pool to the driver, so only the request is
read. Source: tsl/framework/bfc_allocator.cc (DumpMemoryLog), allocator.cc (the statistics),
gpu_cudamallocasync_allocator.cc, op_kernel.cc; TensorFlow 2.0 to 2.21 and later.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..units import human_bytes
from .log_lines import LogLine

# OOM when allocating tensor with shape[32,256,62,62] and type float on /job:.../device:GPU:0 by allocator GPU_0_bfc
_TENSOR = re.compile(
    r"OOM when allocating tensor (?:with|of) shape ?\[(?P<shape>[\d,]{1,100})\] and type (?P<type>\w{1,20})"
)
# Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.91GiB (rounded to 2048000000)requested by op model/conv/Conv2D
_BEGINS = re.compile(
    r"Allocator \((?P<name>\w{1,40})\) ran out of memory trying to allocate (?P<size>[\d.]{1,20})(?P<unit>[KMGT]?i?B)"
    r" ?(?:\(rounded to (?P<rounded>\d{1,18})\))?"
)
_OTHER_MEMORY = re.compile(r"by allocator (?:\w{0,20}cpu|gpu_host_bfc)\b")
# The end of the sentence may not have been copied: "... with freed_by_count=0. The caller indicate"
_NOT_A_FAILURE = re.compile(
    r"caller indicates that this is not a failure|freed_by_count=\d{1,9}\. ?T|\. {0,3}The? ?(?:c|$)"
)
# BFCAllocator dump for GPU_0_bfc: the second line of a dump, or the first one that was recorded
_NAMED = re.compile(r"^BFCAllocator dump for (?P<name>\w{1,40})")
# gpu_async_0 cuMemAllocAsync failed to allocate 281923031072 bytes: CUDA error: out of memory
_ASYNC = re.compile(
    r"(?P<name>\w{1,40}) cuMemAllocAsync failed to allocate (?P<size>\d{1,18}) (?P<unit>bytes)"
)
# Out of memory while trying to allocate 4000000000 bytes: from XLA, without a shape
# Out of memory while trying to allocate 4.02GiB: the same with TensorFlow 2.21
_XLA = re.compile(
    r"Out of memory while trying to allocate (?P<size>\d[\d.]{0,20}) ?(?P<unit>bytes|[KMGT]?i?B)\b"
)
# Not enough memory to allocate 8589934592 on device 0 within provided limit.  limit=2147483648]
_PROVIDED = re.compile(r"within provided limit\. {1,4}limit=(?P<limit>\d{1,18})")
# Limit:                     40231108608
_STATISTIC = re.compile(
    r"^\s{0,80}(?P<name>Limit|InUse|LargestFreeBlock):\s{1,80}(?P<value>\d{1,18})\s*$"
)
# Total bytes in pool: 18995773440 memory_limit_: 18995773440 available bytes: 0 curr_region_allocation_bytes_: 3799154688
_POOL = re.compile(r"(?:Total bytes in pool|total_region_allocated_bytes_): (?P<pool>\d{1,18}) ")
# Allocator memory summary: rounded request 1.00GiB, total free in pool 4.00GiB, largest free chunk ... (after 2.21)
_SUMMARY = re.compile(
    r"^Allocator memory summary: .{0,60}total free in pool (?P<size>[\d.]{1,20})(?P<unit>[KMGT]?i?B),"
)
# Free  at 797202000000 of size 4000000000 next 1       Free  at 0x7f7532 next 12 of size 4096
_FREE = re.compile(
    r"^Free {1,2}at (?:0x)?[\da-f]{1,16} (?:next \d{1,20} )?of size (?P<size>\d{1,18})"
)
# 4 Chunks of size 512000000 totalling 1.91GiB
_SUMMED = re.compile(r"^(?P<count>\d{1,9}) Chunks of size (?P<size>\d{1,18}) totalling ")
_ITEM_BYTES = {
    "double": 8, "int64": 8, "uint64": 8, "complex64": 8, "complex128": 16, "float": 4, "int32": 4, "uint32": 4,
    "half": 2, "bfloat16": 2, "int16": 2, "uint16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
_UNIT_BYTES = {"bytes": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_HOLDER_COUNT = 3
# With less free memory than this multiple of the request, another allocator would soon have failed too.
_PLENTY = 1.5


@dataclass(frozen=True)
class AllocatorDump:
    """The numbers that the text contains; None is unknown.

    Attributes:
        shape: Shape of the tensor that could not be allocated.
        asked_bytes: Size of the request, rounded up like the allocator does if the text gives that number.
        limit_bytes: Limit of the allocator.
        used_bytes: Memory in use at that time.
        pool_bytes: Memory that the allocator had taken from the card, in use or free.
        largest_free_bytes: The largest free block of the pool.
        holders: (count, size) of the blocks that use the most memory in total, largest first.
        from_xla: The request was XLA's. The allocator logs no blocks then.
    """

    shape: tuple[int, ...] | None = None
    asked_bytes: int | None = None
    limit_bytes: int | None = None
    used_bytes: int | None = None
    pool_bytes: int | None = None
    largest_free_bytes: int | None = None
    holders: tuple[tuple[int, int], ...] = ()
    from_xla: bool = False

    @property
    def free_bytes(self) -> int | None:
        """Total free memory up to the limit: free blocks of the pool, and memory not yet taken from the card."""
        if self.limit_bytes is None or self.used_bytes is None:
            return None
        return max(0, self.limit_bytes - self.used_bytes)

    @property
    def free_in_pool_bytes(self) -> int | None:
        """Total free memory in the pool, the memory that was taken from the card."""
        if self.pool_bytes is None or self.used_bytes is None:
            return None
        return max(0, self.pool_bytes - self.used_bytes)

    @property
    def refused_by_card(self) -> bool:
        """True if the limit left enough room but the card did not: the allocator asks the card before it fails."""
        if self.limit_bytes is None or self.pool_bytes is None or not self.asked_bytes:
            return False
        return self.limit_bytes - self.pool_bytes >= self.asked_bytes

    @property
    def fragmented(self) -> bool:
        """True if the pool had much more free memory than requested, but no block was large enough."""
        free, asked, block = self.free_in_pool_bytes, self.asked_bytes, self.largest_free_bytes
        if not free or not asked or self.refused_by_card:
            return False
        if block is None:
            # The failure proves that no block was large enough. It does not prove that the numbers belong to this request.
            return free >= 2 * asked
        return block < asked and free >= _PLENTY * asked

    @property
    def numbers(self) -> str:
        """``requested 2.00 GiB, free 6.00 GiB of 14.0 GiB, largest free block 1.00 GiB``; unknown parts are left out."""
        parts = []
        if self.asked_bytes is not None:
            parts.append(f"requested {human_bytes(self.asked_bytes)}")
        free = human_bytes(self.free_bytes)
        if self.refused_by_card:
            parts.append(f"below its own limit ({free} left), but no memory was free on the card")
        elif self.free_bytes is not None:
            parts.append(f"free {free} of {human_bytes(self.limit_bytes)}")
        elif self.limit_bytes is not None:
            parts.append(f"limit {human_bytes(self.limit_bytes)}")
        if self.largest_free_bytes is not None and not self.refused_by_card:
            parts.append(f"largest free block {human_bytes(self.largest_free_bytes)}")
        return ", ".join(parts)

    @property
    def holders_text(self) -> str:
        """``4 blocks of 3.07 GiB, 12.3 GiB in total; 1 block of 1.00 GiB``."""
        return "; ".join(
            f"1 block of {human_bytes(size)}"
            if count == 1
            else f"{count} blocks of {human_bytes(size)}, {human_bytes(count * size)} in total"
            for count, size in self.holders
        )


@dataclass
class _Reading:
    """One dump while it is read."""

    name: str = ""
    shape: tuple[int, ...] | None = None
    asked: int | None = None
    statistics: dict[str, int] = field(default_factory=dict)
    pool: int | None = None
    free: list[int] = field(default_factory=list)
    summed: dict[int, int] = field(default_factory=dict)
    free_in_pool: int | None = None
    from_xla: bool = False

    @property
    def is_of_gpu(self) -> bool:
        # gpu_host_bfc allocates host memory
        return "host" not in self.name.lower() and "cpu" not in self.name.lower()

    def result(self) -> AllocatorDump:
        used, limit, pool = self.statistics.get("InUse"), self.statistics.get("Limit"), self.pool
        if pool is None and used is not None and self.free_in_pool is not None:
            pool = used + self.free_in_pool
        # If two GPUs print at once, the numbers may not belong together.
        if pool is not None and not (used or 0) <= pool <= (limit or pool):
            pool = None
        holders = sorted(((count, size) for size, count in self.summed.items()), key=math.prod)
        return AllocatorDump(
            self.shape,
            self.asked,
            limit or None,
            used,
            pool,
            self._largest_free(pool, used),
            tuple(holders[: -_HOLDER_COUNT - 1 : -1]),
            self.from_xla,
        )

    def _largest_free(self, pool: int | None, used: int | None) -> int | None:
        # BFC fills this number in since 2026 only; before, 0 was printed whatever was free.
        if known := self.statistics.get("LargestFreeBlock"):
            return known
        if pool is None or used is None:
            return None
        # The text may contain only the end of the list of blocks.
        complete = abs(sum(self.free) - (pool - used)) <= 0.01 * (pool - used)
        return max(self.free, default=0) if complete else None

    def read(self, message: str) -> None:
        """Read one line."""
        if (tensor := _TENSOR.search(message)) is not None:
            if self.shape is None and _OTHER_MEMORY.search(message) is None:
                self._read_tensor(tensor)
        elif "async" in self.name:  # it has no limit, and the driver manages its pool
            return
        elif (block := _FREE.match(message)) is not None:
            self.free.append(int(block["size"]))
        elif (summed := _SUMMED.match(message)) is not None:
            self.summed[int(summed["size"])] = int(summed["count"])
        elif (statistic := _STATISTIC.match(message)) is not None:
            self.statistics[statistic["name"]] = int(statistic["value"])
        elif (pool := _POOL.search(message)) is not None:
            self.pool = int(pool["pool"])
        elif (summary := _SUMMARY.match(message)) is not None:
            self.free_in_pool = _size(summary)

    def _read_tensor(self, tensor: re.Match[str]) -> None:
        self.shape = tuple(int(part) for part in tensor["shape"].split(",") if part)
        item = _ITEM_BYTES.get(tensor["type"])
        # Two requests may fail at once: a dump belongs to the request that it names.
        if self.asked is None and item is not None:
            self.asked = math.prod(self.shape) * item


def allocator_dump(lines: Sequence[LogLine]) -> AllocatorDump:
    """The last dump of a GPU's memory in a text; without one, the requested size that the error itself contains."""
    found = [_Reading()]
    limits: dict[str, int] = {}
    for line in lines:
        message = line.message
        if begins := _BEGINS.search(message):
            if _NOT_A_FAILURE.search(message) is None:
                rounded = begins["rounded"]
                asked = int(rounded) if rounded else _size(begins)
                found.append(_Reading(begins["name"], asked=asked))
        elif "to allocate " in message and (request := _ASYNC.search(message)):
            found.append(_Reading(request["name"], asked=_size(request)))
        elif "to allocate " in message and (request := _XLA.search(message)):
            found.append(_Reading(asked=_size(request), statistics=dict(limits), from_xla=True))
        elif provided := _PROVIDED.search(message):
            limits = {"Limit": int(provided["limit"])}
        elif named := _NAMED.match(message):
            if found[-1].name != named["name"] or found[-1].statistics:
                found.append(_Reading(named["name"]))
        else:
            found[-1].read(message)
    of_gpu = [one for one in found if one.is_of_gpu]
    dumped = [one for one in of_gpu if one.statistics and not one.from_xla]
    requests = [one for one in of_gpu if one.asked or one.shape]
    return (dumped or requests or [_Reading()])[-1].result()


def _size(found: re.Match[str]) -> int | None:
    """Bytes of ``1.91GiB``."""
    unit = _UNIT_BYTES.get(found["unit"])
    try:
        return None if unit is None else round(float(found["size"]) * unit)
    except ValueError:
        return None
