"""Limit, use and out-of-memory kills of the memory cgroup of a process and of its ancestors."""

from __future__ import annotations

import contextlib
import time

from ..errors import SourceUnavailable
from ..metrics import Metric, Unit
from .memory_group import MemoryGroup, group_path, groups_at, machine_bytes, memory_groups
from .procfs import read_small, read_text

_REFRESH_SECONDS = 1.0
_CHANGED_BYTES = 16 << 20  # since the file cache was read
_PF_EXITING = 0x4  # include/linux/sched.h: the task is exiting


class CgroupCollector:
    """Memory of the group with the binding limit: the smallest limit among the group of a process and its ancestors.

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
            "memory.max, memory.limit_in_bytes; smallest of the group and its ancestors",
        ),
        Metric(
            "cgroup.used_bytes",
            "Memory in use by the control group, with file cache",
            Unit.BYTES,
            "memory.current, memory.usage_in_bytes of the group whose limit binds",
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
            "memory.failcnt; memory.events.local: max",
        ),
        Metric(
            "cgroup.oom_count",
            "Times the memory limit invoked the out-of-memory killer",
            Unit.COUNT,
            "memory.events.local: oom, of the group whose limit binds; cgroup v2 only",
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
        """The group with the binding limit; without a limit, the group of the process."""
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
            place = self._placement.look()
            # The list of mounts can be long; read it only if the process was moved.
            if place is not None:
                self._values = GroupValues(groups_at(*place, root=self._root), self._host_bytes)
        self._values.refresh()

    def close(self) -> None:
        """Nothing is kept open."""


class GroupValues:
    """The numbers of a group and its ancestors, the same for all processes in it.

    Args:
        groups: The innermost group first.
        host_bytes: Memory of the machine.

    Attributes:
        binding: The group with the binding limit; the first if there is no limit.
    """

    def __init__(self, groups: tuple[MemoryGroup, ...], host_bytes: float) -> None:
        self.groups = groups
        self.binding = groups[0]
        self._host_bytes = host_bytes
        self._slow_values: dict[str, float] = {}
        self._used_then: int | None = None
        self.refresh()

    def refresh(self) -> None:
        """Read the limits and the file cache again."""
        limits = [(group.limit_bytes(), group) for group in self.groups]
        bounded = [(limit, group) for limit, group in limits if limit is not None]
        limit, binding = min(bounded, key=lambda pair: pair[0], default=(None, self.groups[0]))
        values: dict[str, float] = {}
        if limit is not None and limit < self._host_bytes:
            values["cgroup.limit_bytes"] = limit
        reclaimable = binding.reclaimable_bytes()
        if reclaimable is not None:
            values["cgroup.reclaimable_bytes"] = reclaimable
        self.binding, self._slow_values = binding, values
        self._used_then = binding.used_bytes()

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
        found = {
            "cgroup.oom_kill_count": self.groups[0].oom_kill_count(),
            "cgroup.failcnt_count": self.binding.failcnt_count(),
            "cgroup.oom_count": self.binding.oom_count(),
        }
        return {name: count for name, count in found.items() if count is not None}


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

    def look(self) -> tuple[str, int] | None:
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
