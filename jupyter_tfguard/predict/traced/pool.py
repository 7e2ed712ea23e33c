"""Simulation of TensorFlow's memory pool: which pages of its regions are touched by a sequence of allocations.

The rules are those of TensorFlow's BFC allocator, with the settings of the CPU pool (oneDNN): best fit, regions that
double, chunks that are split if they are much too large, free neighbors that are merged. Nothing is returned to the system.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass

# Smaller tensors come from malloc.
POOL_BYTES = 256 << 10
_ALIGNMENT = 256
_FIRST_REGION_BYTES = 2 << 20
_MOST_UNUSED_BYTES = 128 << 20
_PAGE_BYTES = 16 << 10  # granularity of what counts as touched


@dataclass(slots=True, eq=False)
class Chunk:
    """A part of a region; `before` and `after` are its neighbors in the same region."""

    region: int
    start: int
    size: int
    is_free: bool = True
    before: Chunk | None = None
    after: Chunk | None = None


class Pool:
    """A pool without a limit."""

    def __init__(self) -> None:
        self._next_region_bytes = _FIRST_REGION_BYTES
        self._touched: list[bytearray] = []  # one byte for each page of a region
        self._free: list[tuple[int, int, int]] = []  # size, region, start; sorted
        self._chunks: dict[tuple[int, int], Chunk] = {}  # the free ones, by region and start

    def allocate(self, size: int) -> Chunk:
        """A chunk of at least `size` bytes, of which `size` bytes are touched."""
        rounded = -(-size // _ALIGNMENT) * _ALIGNMENT
        place = bisect.bisect_left(self._free, (rounded, -1, -1))
        if place == len(self._free):
            self._add_region(rounded)
            place = bisect.bisect_left(self._free, (rounded, -1, -1))
        _, region, start = self._free.pop(place)
        chunk = self._chunks.pop((region, start))
        chunk.is_free = False
        if chunk.size >= 2 * rounded or chunk.size - rounded >= _MOST_UNUSED_BYTES:
            self._split(chunk, rounded)
        first, last = start // _PAGE_BYTES, (start + size - 1) // _PAGE_BYTES + 1
        self._touched[region][first:last] = b"\1" * (last - first)
        return chunk

    def free(self, chunk: Chunk) -> None:
        """Give a chunk back, and merge it with free neighbors."""
        after, before = chunk.after, chunk.before
        if after is not None and after.is_free:
            self._take(after)
            self._merge(chunk, after)
        if before is not None and before.is_free:
            self._take(before)
            self._merge(before, chunk)
            chunk = before
        self._give(chunk)

    def touched_bytes(self) -> int:
        """Bytes of all pages that were ever part of an allocation."""
        return _PAGE_BYTES * sum(pages.count(1) for pages in self._touched)

    def _add_region(self, rounded: int) -> None:
        is_larger = rounded > self._next_region_bytes
        while rounded > self._next_region_bytes:
            self._next_region_bytes *= 2
        size = self._next_region_bytes
        if not is_larger:
            self._next_region_bytes *= 2
        self._touched.append(bytearray(size // _PAGE_BYTES))
        self._give(Chunk(len(self._touched) - 1, 0, size))

    def _split(self, chunk: Chunk, size: int) -> None:
        rest = Chunk(chunk.region, chunk.start + size, chunk.size - size, True, chunk, chunk.after)
        if rest.after is not None:
            rest.after.before = rest
        chunk.after, chunk.size = rest, size
        self._give(rest)

    def _merge(self, first: Chunk, second: Chunk) -> None:
        first.size += second.size
        first.after = second.after
        if first.after is not None:
            first.after.before = first

    def _give(self, chunk: Chunk) -> None:
        chunk.is_free = True
        self._chunks[chunk.region, chunk.start] = chunk
        bisect.insort(self._free, (chunk.size, chunk.region, chunk.start))

    def _take(self, chunk: Chunk) -> None:
        del self._chunks[chunk.region, chunk.start]
        key = (chunk.size, chunk.region, chunk.start)
        del self._free[bisect.bisect_left(self._free, key)]
