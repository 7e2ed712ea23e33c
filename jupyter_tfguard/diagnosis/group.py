"""The memory counters of one cgroup before and after a death, and what they show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..decode import dict_of, number_of


@dataclass(frozen=True)
class Group:
    """Memory counters of one cgroup that the watcher read before and after the crash."""

    path: str
    version: int
    own: bool
    before: dict[str, Any]
    after: dict[str, Any]

    def rise(self, name: str) -> int | None:
        """How much a counter rose; None unless it was read both times."""
        old, new = number_of(self.before.get(name)), number_of(self.after.get(name))
        return None if old is None or new is None else max(0, int(new - old))

    @property
    def hit_limit(self) -> bool:
        """True if its own limit was hit. v2 counts the resulting OOM events; v1 counts hits (Linux 6.18 does not)."""
        if self.version == 2:
            return bool(self.rise("oom_count"))
        hit = self.rise("failcnt_count") or self.was_full
        return bool(self.version == 1 and self.limit_bytes and hit)

    @property
    def was_full(self) -> bool:
        """True if its peak is at the limit, and rose to it between the readings or use was above half the limit before."""
        limit, peak = self.limit_bytes, number_of(self.after.get("peak_bytes"))
        used = number_of(self.before.get("used_bytes"))
        if limit is None or peak is None or used is None or peak < 0.99 * limit:
            return False
        return used > 0.5 * limit or (number_of(self.before.get("peak_bytes")) or 0) < 0.99 * limit

    @property
    def limit_bytes(self) -> int | None:
        """The limit; None when there is none or it is not known."""
        found = number_of(self.before.get("limit_bytes")) or number_of(
            self.after.get("limit_bytes")
        )
        return int(found) if found else None


def groups_of(counted_before: dict[str, Any], counted_after: dict[str, Any]) -> list[Group]:
    """The kernel's cgroup first, then its ancestors, from the two readings; empty when not read."""
    before = {g["path"]: g for g in _groups(counted_before)}
    after = {g["path"]: g for g in _groups(counted_after)}
    return [
        Group(
            path,
            int(number_of(g.get("version")) or 0),
            bool(g.get("own")),
            g,
            after.get(path, {}),
        )
        for path, g in before.items()
    ]


def _groups(counters: dict[str, Any]) -> list[dict[str, Any]]:
    groups = counters.get("groups")
    found = [dict_of(g) for g in groups] if isinstance(groups, (list, tuple)) else []
    return [g for g in found if isinstance(g.get("path"), str)]
