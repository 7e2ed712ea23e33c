"""What a GPU's allocator held at a request that failed, and whether pieces too small were the reason.

Free memory has three parts that help differently. Blocks between others in the allocator's own regions: only these can be
too small one by one, which is fragmentation. Memory below its limit that it never took from the card: it tries to take it
before it gives up, so where that would have sufficed, the card refused, because others hold it. And memory of the card
beyond its limit, of which the allocator knows nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..units import human_bytes

# Less than this more than was asked for, and another allocator could not have served it for long either.
_PLENTY = 1.5


@dataclass(frozen=True)
class Holder:
    """Blocks in use that belong together: of one size, or of one operation where the build of TensorFlow tells it."""

    count: int
    total_bytes: int
    op: str | None

    @property
    def text(self) -> str:
        """``4 blocks of 3.07 GiB, 12.3 GiB in all``."""
        if self.op is not None:
            blocks = "1 block" if self.count == 1 else f"{self.count} blocks"
            return f"{self.op}: {human_bytes(self.total_bytes)} in {blocks}"
        one = human_bytes(self.total_bytes / self.count)
        if self.count == 1:
            return f"1 block of {one}"
        return f"{self.count} blocks of {one}, {human_bytes(self.total_bytes)} in all"


@dataclass(frozen=True)
class AllocatorDump:
    """What the text tells; None is unknown.

    Attributes:
        shape: Of the tensor that found no room.
        asked_bytes: What was asked for at once, rounded up as the allocator does where it says so.
        op: The operation that asked.
        limit_bytes: Of the allocator. The asynchronous one does not keep to its own.
        used_bytes: In use at that time.
        pool_bytes: Taken from the card, in use or free.
        largest_free_bytes: The largest block of the pool that was free.
        card_free_bytes: Free on the card, as CUDA says; only the asynchronous allocator asks.
        card_total_bytes: Of the card.
        holders: The most of what is in use, largest first.
        asynchronous: True for the driver's pool.
    """

    shape: tuple[int, ...] | None = None
    asked_bytes: int | None = None
    op: str | None = None
    limit_bytes: int | None = None
    used_bytes: int | None = None
    pool_bytes: int | None = None
    largest_free_bytes: int | None = None
    card_free_bytes: int | None = None
    card_total_bytes: int | None = None
    holders: tuple[Holder, ...] = ()
    asynchronous: bool = False

    @property
    def free_bytes(self) -> int | None:
        """Free in sum, up to the limit: blocks of the pool, and what was never taken from the card."""
        if self.asynchronous:
            return self.free_in_pool_bytes
        if self.limit_bytes is None or self.used_bytes is None:
            return None
        return max(0, self.limit_bytes - self.used_bytes)

    @property
    def free_in_pool_bytes(self) -> int | None:
        """Free in sum in what was taken from the card."""
        if self.pool_bytes is None or self.used_bytes is None:
            return None
        return max(0, self.pool_bytes - self.used_bytes)

    @property
    def not_taken_bytes(self) -> int | None:
        """Below the limit, and never taken from the card."""
        if self.asynchronous or self.limit_bytes is None or self.pool_bytes is None:
            return None
        return max(0, self.limit_bytes - self.pool_bytes)

    @property
    def refused_by_card(self) -> bool:
        """True when the limit left enough room, and the card did not have it: it is tried before giving up."""
        left = self.not_taken_bytes
        return left is not None and self.asked_bytes is not None and left >= self.asked_bytes

    @property
    def fragmented(self) -> bool:
        """True when much more than was asked for was free in the pool, and no block of it was large enough."""
        free, asked, block = self.free_in_pool_bytes, self.asked_bytes, self.largest_free_bytes
        if self.asynchronous or not free or not asked or self.refused_by_card:
            return False
        if block is None:
            # That none was large enough follows from the failure alone; that both are of one request does not.
            return free >= 2 * asked
        return block < asked and free >= _PLENTY * asked
