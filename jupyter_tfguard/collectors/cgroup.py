"""Limit, use and out-of-memory kills of the memory cgroup of a process and of its ancestors."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import NamedTuple

from ..errors import SourceUnavailable
from ..memory.groups import MemoryGroup, group_path, groups_at, machine_bytes, memory_groups
from ..memory.limits import memory_limit
from ..metrics import Metric, Unit
from ..procfs import read_small, read_text

_REFRESH_SECONDS = 1.0
_CHANGED_BYTES = 16 << 20  # since the file cache was read
_PF_EXITING = 0x4  # include/linux/sched.h: the task is exiting


class CgroupCollector:
    """Memory of the group with the least headroom, among the group of a process and its ancestors.

    Each sample reads only the use; counters and limits are read once a second. The group is also looked up once a
    second, because a process can be moved. While the process is exiting the last group is kept: cgroup v1 then shows
    ``/``.

    Args:
        pid: The process.
        root: Prefix of ``/proc`` and the mount points.
        host_bytes: Memory of the machine; a higher limit has no effect and is left out.

    Raises:
        SourceUnavailable: No memory controller is visible here.
    """

    metrics: tuple[Metric, ...] = (
        Metric(
            "cgroup.limit_bytes",
            "Memory limit of the control group",
            Unit.BYTES,
            "memory.max, memory.limit_in_bytes of the group with the least headroom",
        ),
        Metric(
            "cgroup.used_bytes",
            "Memory in use by the control group, with file cache",
            Unit.BYTES,
            "memory.current, memory.usage_in_bytes of the same group",
        ),
        Metric(
            "cgroup.reclaimable_bytes",
            "File cache of the control group",
            Unit.BYTES,
            "memory.stat, active_file + inactive_file",
        ),
        Metric(
            "cgroup.oom_kill_count",
            "Out-of-memory kills in the control group",
            Unit.COUNT,
            "memory.events, memory.oom_control: oom_kill",
        ),
        Metric(
            "cgroup.failcnt_count",
            "Times the memory limit was hit",
            Unit.COUNT,
            "memory.failcnt; memory.events.local: max; of the group and its ancestors",
        ),
        Metric(
            "cgroup.oom_count",
            "Times the memory limit invoked the out-of-memory killer",
            Unit.COUNT,
            "memory.events.local: oom, of the group and its ancestors; cgroup v2 only",
        ),
    )

    def __init__(self, pid: int, *, root: str = "", host_bytes: int | None = None) -> None:
        self._root = root
        self._refresh_next = 0.0
        self._host_bytes = machine_bytes(root) if host_bytes is None else host_bytes
        self._placement = Placement(pid, root=root)
        self._values = GroupValues(memory_groups(pid, root=root), self._host_bytes)
        self._counts: dict[str, float] = {}

    @property
    def groups(self) -> tuple[MemoryGroup, ...]:
        """The group of the process first, then its ancestors."""
        return self._values.groups

    @property
    def binding(self) -> MemoryGroup:
        """The group with the least headroom; without a limit, the group of the process."""
        return self._values.binding

    def collect(self) -> dict[str, float]:
        """Value per metric name; unknown values are left out.

        Raises:
            SourceUnavailable: The group's files are gone.
        """
        now = time.monotonic()
        if now >= self._refresh_next:
            self._refresh_next = now + _REFRESH_SECONDS
            self.refresh()
            self._counts = self._values.counts()
        return self._values.used() | self._counts

    def refresh(self) -> None:
        """Look up groups and limits again; keeps the old groups if the new ones are not reliable."""
        with contextlib.suppress(SourceUnavailable):
            if (groups := self._placement.new_groups()) is not None:
                self._values = GroupValues(groups, self._host_bytes)
        self._values.refresh()

    def close(self) -> None:
        """Nothing is kept open."""


def limit_hits(groups: Sequence[MemoryGroup]) -> dict[str, int | None]:
    """How often a limit was hit, summed over a group and its ancestors: a kernel does not know which will be."""

    def total(counts: list[int | None]) -> int | None:
        known = [count for count in counts if count is not None]
        return sum(known) if known else None

    return {
        "failcnt_count": total([group.failcnt_count() for group in groups]),
        "oom_count": total([group.oom_count() for group in groups]),
    }


class _Read(NamedTuple):
    """The known metrics of one group."""

    group: MemoryGroup
    values: dict[str, float]

    @classmethod
    def of(cls, group: MemoryGroup, limit: int | None) -> _Read:
        found = {
            "cgroup.limit_bytes": limit,
            "cgroup.used_bytes": group.used_bytes(),
            "cgroup.reclaimable_bytes": group.reclaimable_bytes(),
        }
        return cls(group, {name: size for name, size in found.items() if size is not None})

    def left(self) -> float:
        limit = memory_limit(self.values)
        return 0.0 if limit is None else limit.left(self.values)


class GroupValues:
    """The numbers of a group and its ancestors, the same for all processes in it.

    Args:
        groups: The innermost group first.
        host_bytes: Memory of the machine.

    Attributes:
        binding: The group with the least headroom; the first if there is no limit.
    """

    def __init__(self, groups: tuple[MemoryGroup, ...], host_bytes: float) -> None:
        self.groups = groups
        self.binding = groups[0]
        self._host_bytes = host_bytes
        self._slow_values: dict[str, float] = {}
        self._used_then: float | None = None
        self.refresh()

    def refresh(self) -> None:
        """Read the limits and the file cache again."""
        limits = [(group, group.limit_bytes()) for group in self.groups]
        bounded = [
            (g, limit) for g, limit in limits if limit is not None and limit < self._host_bytes
        ]
        read = [_Read.of(*pair) for pair in bounded] or [_Read.of(self.groups[0], None)]
        found = min(read, key=_Read.left)
        self.binding, self._slow_values = found
        self._used_then = found.values.get("cgroup.used_bytes")

    def used(self) -> dict[str, float]:
        """Use of the binding group, with its limit and file cache.

        These two are read again only by :meth:`refresh`, and once the use has changed: the file cache may have.

        Raises:
            SourceUnavailable: The group's files are gone.
        """
        used = self.binding.used_bytes()
        if used is None:
            raise SourceUnavailable(f"the memory use of the control group {self.binding.path}")
        if abs(used - (self._used_then or 0)) >= _CHANGED_BYTES:
            self.refresh()
        return self._slow_values | {"cgroup.used_bytes": used}

    def counts(self) -> dict[str, float]:
        """Counters of kills and of limit hits."""
        found = {"oom_kill_count": self.groups[0].oom_kill_count()} | limit_hits(self.groups)
        return {f"cgroup.{name}": count for name, count in found.items() if count is not None}


class Placement:
    """Looks up the memory group of a process.

    Args:
        pid: The process.
        root: Prefix of ``/proc``.
    """

    def __init__(self, pid: int, *, root: str = "") -> None:
        self._pid = pid
        self._root = root
        self._placed = b""

    def new_groups(self) -> tuple[MemoryGroup, ...] | None:
        """Its groups, the innermost first; None as for :meth:`poll`.

        Raises:
            SourceUnavailable: As :meth:`poll`, or the groups are not visible.
        """
        # The list of mounts can be long: it is read only if the process was moved.
        place = self.poll()
        return None if place is None else groups_at(*place, root=self._root)

    def poll(self) -> tuple[str, int] | None:
        """Path and version of its group; None if it is unchanged, or if the process is exiting.

        Raises:
            SourceUnavailable: There is no such process, or it is in no memory group.
        """
        file = f"{self._root}/proc/{self._pid}/cgroup"
        try:
            placed = read_small(file)
        except OSError as bad:
            raise SourceUnavailable(f"{file}: {bad.strerror}") from bad
        if placed == self._placed or self._is_exiting():
            return None
        self._placed = placed
        return group_path(placed.decode("utf-8", "replace"))

    def _is_exiting(self) -> bool:
        # Fields 3 (state) and 9 (flags) of /proc/[pid]/stat, counted after the name's last bracket.
        try:
            fields = read_text(f"{self._root}/proc/{self._pid}/stat").rpartition(")")[2].split()
            return fields[0] in "ZX" or bool(int(fields[6]) & _PF_EXITING)
        except (SourceUnavailable, IndexError, ValueError):
            return True
