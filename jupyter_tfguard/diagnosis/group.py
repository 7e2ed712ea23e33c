"""The memory counters of one cgroup before and after a death, and what they show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..decode import decode, list_of
from ..record.facts import GroupCounters


@dataclass(frozen=True)
class Group:
    """Memory counters of one cgroup that the watcher read before and after the crash."""

    before: GroupCounters
    after: GroupCounters | None

    @property
    def path(self) -> str:
        """As in ``/proc/[pid]/cgroup``."""
        return self.before.path

    @property
    def version(self) -> int:
        """1 or 2."""
        return self.before.version

    @property
    def own(self) -> bool:
        """True for the group that contains the kernel."""
        return self.before.own

    @property
    def peaks(self) -> tuple[int | None, int | None]:
        """Its highest use until the two readings."""
        return self.before.peak_bytes, None if self.after is None else self.after.peak_bytes

    def rise(self, name: str) -> int | None:
        """How much a counter rose; None unless it was read both times."""
        old, new = getattr(self.before, name), getattr(self.after, name, None)
        return None if old is None or new is None else max(0, new - old)

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
        limit, used = self.limit_bytes, self.before.used_bytes
        peak_before, peak = self.peaks
        if limit is None or peak is None or used is None or peak < 0.99 * limit:
            return False
        return used > 0.5 * limit or (peak_before or 0) < 0.99 * limit

    @property
    def limit_bytes(self) -> int | None:
        """The limit; None when there is none or it is not known."""
        after = None if self.after is None else self.after.limit_bytes
        return self.before.limit_bytes or after or None


def groups_of(counted_before: dict[str, Any], counted_after: dict[str, Any]) -> list[Group]:
    """The kernel's cgroup first, then its ancestors, from the two readings; empty when not read."""
    after = _groups(counted_after)
    return [Group(group, after.get(path)) for path, group in _groups(counted_before).items()]


def _groups(counters: dict[str, Any]) -> dict[str, GroupCounters]:
    found = (decode(GroupCounters, one) for one in list_of(counters.get("groups")))
    return {group.path: group for group in found if group is not None}
