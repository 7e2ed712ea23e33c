"""TensorFlow's own account of its GPU memory at a request that failed: what was asked, what was free, who held the rest.

Both allocators print one: the BFC allocator, which splits the regions that it took from the card into blocks, and the
asynchronous one of ``TF_GPU_ALLOCATOR=cuda_malloc_async``, where the driver keeps the pool. Read from text alone.

Source: tsl/framework/bfc_allocator.cc (DumpMemoryLog), allocator.cc (the statistics), gpu_cudamallocasync_allocator.cc,
op_kernel.cc, as far as public versions of TensorFlow 1.13 to 2.21 and later have them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .allocator_state import AllocatorDump, Holder
from .log_lines import LogLine

# OOM when allocating tensor with shape[32,256,62,62] and type float on /job:.../device:GPU:0 by allocator GPU_0_bfc
_TENSOR = re.compile(
    r"OOM when allocating tensor (?:with|of) shape ?\[(?P<shape>[\d,]{1,100})\] and type (?P<type>\w{1,20})"
)
# Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.91GiB (rounded to 2048000000)requested by op model/conv/Conv2D
_BEGINS = re.compile(
    r"Allocator \((?P<name>\w{1,40})\) ran out of memory trying to allocate (?P<size>[\d.]{1,20})(?P<unit>[KMGT]?i?B)"
    r" ?(?:\(rounded to (?P<rounded>\d{1,18})\))?(?: from the \w{1,20} end)?(?: ?requested by op (?P<op>[^\s,]{1,300}))?"
)
_OTHER_MEMORY = re.compile(r"by allocator (?:\w{0,20}cpu|gpu_host_bfc)\b")
_ONLY_A_WISH = "caller indicates that this is not a failure"
# gpu_async_0 cuMemAllocAsync failed to allocate 281923031072 bytes: CUDA error: out of memory
_ASYNC_BEGINS = re.compile(
    r"(?P<name>\w{1,40}) cuMemAllocAsync failed to allocate (?P<asked>\d{1,18})\b"
)
# Out of memory while trying to allocate 4000000000 bytes: what XLA says, without a shape
_XLA = re.compile(r"Out of memory while trying to allocate (?P<asked>\d{1,18}) bytes")
# Limit:                     40231108608, after "Stats: " where the asynchronous allocator prints it
_STATISTIC = re.compile(
    r"^(?:Stats:)?\s{0,80}(?P<name>Limit|InUse|LargestFreeBlock):\s{1,80}(?P<value>\d{1,18})\s*$"
)
# Total bytes in pool: 18995773440 memory_limit_: 18995773440 available bytes: 0 curr_region_allocation_bytes_: 3799154688
_POOL = re.compile(
    r"(?:Total bytes in pool|total_region_allocated_bytes_): (?P<pool>\d{1,18}) memory_limit_: (?P<limit>\d{1,18}) "
)
# Allocator memory summary: rounded request 1.00GiB, total free in pool 4.00GiB, largest free chunk ... (after 2.21)
_SUMMARY = re.compile(
    r"^Allocator memory summary: .{0,60}total free in pool (?P<size>[\d.]{1,20})(?P<unit>[KMGT]?i?B),"
)
# InUse at 797202000000 of size 4000000000 by op model/dense/MatMul action_count 1 step 2 next 1; before 2.0 "Chunk at 0x..."
_BLOCK = re.compile(
    r"^(?P<kind>InUse|Chunk|Free ?) at (?:0x)?[\da-f]{1,16} of size (?P<size>\d{1,18})(?: by op (?P<op>\S{1,300}))?"
)
# 4 Chunks of size 512000000 totalling 1.91GiB
_SUMMED = re.compile(r"^(?P<count>\d{1,9}) Chunks of size (?P<size>\d{1,18}) totalling ")
# Reported by CUDA: Free memory/Total memory: 3407872/16945512448
_CARD = re.compile(r"Free memory/Total memory: (?P<free>\d{1,18})/(?P<total>\d{1,18})")
_POOL_ATTRIBUTE = re.compile(
    r"^CU_MEMPOOL_ATTR_(?P<name>RESERVED|USED)_MEM_CURRENT: (?P<value>\d{1,18})\s*$"
)
_ITEM_BYTES = {
    "double": 8, "int64": 8, "uint64": 8, "complex64": 8, "complex128": 16, "float": 4, "int32": 4, "uint32": 4,
    "half": 2, "bfloat16": 2, "int16": 2, "uint16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
_UNIT_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_HOLDER_COUNT = 3


@dataclass
class _Reading:
    """One dump while it is read."""

    name: str = ""
    begun: bool = False  # its first line was seen
    shape: tuple[int, ...] | None = None
    asked: int | None = None
    op: str | None = None
    asynchronous: bool = False
    statistics: dict[str, int] = field(default_factory=dict)
    pool: dict[str, int] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    summed: dict[int, int] = field(default_factory=dict)
    ops: dict[str, list[int]] = field(default_factory=dict)
    told_free: int | None = None
    card: tuple[int, int] | None = None

    @property
    def is_of_gpu(self) -> bool:
        # gpu_host_bfc is the machine's memory
        return "host" not in self.name.lower() and "cpu" not in self.name.lower()

    def result(self) -> AllocatorDump:
        used = self.pool.get("USED", self.statistics.get("InUse"))
        limit = self.statistics.get("Limit", self.pool.get("limit"))
        pool = self.pool.get("RESERVED" if self.asynchronous else "pool")
        if pool is None and used is not None and self.told_free is not None:
            pool = used + self.told_free
        # Two GPUs that print at once tell numbers that do not go together.
        if pool is not None and (
            (used is not None and pool < used)
            or (not self.asynchronous and limit is not None and pool > limit)
        ):
            pool = None
        free, total = self.card or (None, None)
        return AllocatorDump(
            self.shape,
            self.asked,
            self.op,
            limit or None,
            used,
            pool,
            self._largest_free(pool, used),
            free,
            total,
            self._holders(),
            self.asynchronous,
        )

    def _largest_free(self, pool: int | None, used: int | None) -> int | None:
        # BFC fills this number in since 2026 only; before, 0 was printed whatever was free.
        if told := self.statistics.get("LargestFreeBlock"):
            return told
        if pool is None or used is None or self.asynchronous:
            return None
        if pool == used:
            return 0
        # All of the blocks, or only the end of the list?
        complete = abs(sum(self.free) - (pool - used)) < 0.01 * (pool - used)
        return max(self.free) if complete else None

    def _holders(self) -> tuple[Holder, ...]:
        if self.ops:
            found = [Holder(len(sizes), sum(sizes), op) for op, sizes in self.ops.items()]
        else:
            found = [Holder(count, count * size, None) for size, count in self.summed.items()]
        found = [holder for holder in found if holder.total_bytes > 0]
        return tuple(sorted(found, key=lambda h: -h.total_bytes)[:_HOLDER_COUNT])


def allocator_dump(lines: Sequence[LogLine]) -> AllocatorDump:
    """The last dump of a GPU's memory in a text; where there is none, what the error itself says was asked for."""
    found = [_Reading()]
    for line in lines:
        message = line.message
        if ("ran out of memory" in message or "cuMemAllocAsync failed" in message) and (
            begun := _begun(message)
        ):
            found.append(begun)
        elif message.startswith("BFCAllocator dump for "):
            _named(found, message.removeprefix("BFCAllocator dump for ").strip())
        else:
            _read(found[-1], message)
    with_numbers = [one for one in found if one.is_of_gpu and one.statistics]
    of_gpu = [one for one in found if one.is_of_gpu and (one.begun or one.asked or one.shape)]
    return (with_numbers or of_gpu or [_Reading()])[-1].result()


def _begun(message: str) -> _Reading | None:
    if _ONLY_A_WISH in message:
        return None
    if asynchronous := _ASYNC_BEGINS.search(message):
        wanted = int(asynchronous["asked"])
        return _Reading(asynchronous["name"], True, asked=wanted, asynchronous=True)
    if (begins := _BEGINS.search(message)) is None:
        return None
    rounded = begins["rounded"]
    asked = int(rounded) if rounded else _size(begins)
    return _Reading(begins["name"], True, asked=asked, op=begins["op"])


def _size(found: re.Match[str]) -> int | None:
    """Bytes of ``1.91GiB``."""
    unit = _UNIT_BYTES.get(found["unit"])
    try:
        return None if unit is None else round(float(found["size"]) * unit)
    except ValueError:
        return None


def _named(found: list[_Reading], name: str) -> None:
    """The second line of a dump, or the first that was kept of it."""
    last = found[-1]
    if last.begun and not last.statistics and last.name in ("", name):
        return
    found.append(_Reading(name, True))


def _read(into: _Reading, message: str) -> None:
    if "of size " in message:
        if (block := _BLOCK.match(message)) is not None:
            if block["kind"].startswith("Free"):
                into.free.append(int(block["size"]))
            elif block["op"]:
                into.ops.setdefault(block["op"], []).append(int(block["size"]))
        elif (summed := _SUMMED.match(message)) is not None:
            into.summed[int(summed["size"])] = int(summed["count"])
    elif (statistic := _STATISTIC.match(message)) is not None:
        into.statistics[statistic["name"]] = int(statistic["value"])
    elif (pool := _POOL.search(message)) is not None:
        into.pool |= {"pool": int(pool["pool"]), "limit": int(pool["limit"])}
    elif message.startswith("Allocator memory summary") and (told := _SUMMARY.match(message)):
        into.told_free = _size(told)
    elif (attribute := _POOL_ATTRIBUTE.match(message)) is not None:
        into.pool[attribute["name"]] = int(attribute["value"])
    elif (card := _CARD.search(message)) is not None:
        into.card = (int(card["free"]), int(card["total"]))
    elif into.shape is None and (tensor := _TENSOR.search(message)) is not None:
        if _OTHER_MEMORY.search(message) is None:
            _read_tensor(into, tensor)
    elif into.asked is None and (xla := _XLA.search(message)) is not None:
        into.asked = int(xla["asked"])


def _read_tensor(into: _Reading, tensor: re.Match[str]) -> None:
    shape = tuple(int(part) for part in tensor["shape"].split(",") if part)
    item = _ITEM_BYTES.get(tensor["type"])
    size = math.prod(shape) * item if item else None
    into.shape = shape
    # Two requests may fail at once: a dump belongs to the one that it names.
    if not into.begun and size is not None:
        into.asked = size
