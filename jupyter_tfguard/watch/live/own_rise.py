"""How much a kernel itself has grown lately: where several share a limit, only the one that grows is warned of."""

from __future__ import annotations

from statistics import fmean
from typing import NamedTuple

from ..history import ROW_SECONDS, Rows

_RECENT_SECONDS = 20.0


class OwnRise(NamedTuple):
    """Growth of a kernel and its children in this run, in the last two minutes.

    Attributes:
        whole_bytes: Newest value above the lowest.
        recent_bytes: In the last 20 seconds: mean of their last third above that of their first.
    """

    whole_bytes: float
    recent_bytes: float

    @classmethod
    def of(cls, rows: Rows, since: float | None) -> OwnRise:
        """The growth since a moment, in Unix seconds; since the oldest row if that is unknown."""
        held = [
            (when or 0.0, (rss or 0.0) + (children or 0.0))
            for when, rss, children, *_ in rows.read()
            if since is None or (when is not None and when >= since)
        ]
        if not held:
            return cls(0.0, 0.0)
        newest, now = held[-1]
        recent = [size for when, size in held if when >= newest - _RECENT_SECONDS]
        third = max(1, len(recent) // 3)
        risen = fmean(recent[-third:]) - fmean(recent[:third])
        return cls(now - min(size for _, size in held), risen)

    def goes_on(self, size_bytes: float) -> bool:
        """True if the growth is at least `size_bytes`, and still goes on at that rate."""
        part = _RECENT_SECONDS / ROW_SECONDS
        return self.whole_bytes >= size_bytes and self.recent_bytes >= part * size_bytes
