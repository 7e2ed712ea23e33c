"""The counters that prove or rule out an out-of-memory kill, read before and after a death."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from ..collectors.memory_group import MemoryGroup
from ..record.facts import Counters, GroupCounters


class GroupReader:
    """Reads groups, each once: groups below one another share their ancestors. To be made anew for each round."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool], GroupCounters] = {}

    def read(self, groups: Iterable[MemoryGroup]) -> tuple[GroupCounters, ...]:
        """Counters of these groups, not older than this reader."""
        found = []
        for group in groups:
            key = (group.directory, group.own)
            if key not in self._known:
                self._known[key] = GroupCounters(**group.counters())
            found.append(self._known[key])
        return tuple(found)


def counters(
    groups: tuple[GroupCounters, ...],
    host: Mapping[str, float],
    group_pids: tuple[int, ...] | None,
) -> Counters:
    """Everything at one moment.

    Args:
        groups: The kernel's own group first.
        host: What :class:`~..collectors.host.HostCollector` read.
        group_pids: Processes of the kernel's own group.
    """

    def known(name: str) -> int | None:
        return int(host[name]) if name in host else None

    swap_total, swap_used = known("host.swap_total_bytes"), known("host.swap_used_bytes")
    return Counters(
        time=time.time(),
        groups=groups,
        host_oom_kill_count=known("host.oom_kill_count"),
        host_available_bytes=known("host.available_bytes"),
        host_total_bytes=known("host.total_bytes"),
        swap_total_bytes=swap_total,
        swap_free_bytes=None if swap_total is None or swap_used is None else swap_total - swap_used,
        group_pids=group_pids,
    )
