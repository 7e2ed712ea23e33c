"""A memory group shared by kernels: values that are the same for all of them are read once.

The kernels of a server usually share one group. The sampler reads the values for samples, the slow poll reads the
counters, and the crash thread reads the counters after a crash. Each thread only replaces whole objects, so no lock is
needed.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Mapping
from weakref import WeakValueDictionary

from ...collectors.cgroup import GroupValues
from ...collectors.host import HostCollector
from ...errors import SourceUnavailable
from ...memory.groups import MemoryGroup, groups_at, machine_bytes
from ...record.facts import Counters, GroupCounters
from ..history import SHARED_COLUMNS

Shared = tuple[dict[str, float], tuple[float, ...]]


class SharedGroup:
    """A memory group with its ancestors; without a visible group, only the machine.

    Args:
        groups: The innermost group first; empty = not visible.
        host_bytes: Memory of the machine.

    Attributes:
        counters: From the last poll; None before the first.
    """

    def __init__(self, groups: tuple[MemoryGroup, ...], host_bytes: float) -> None:
        self.groups = groups
        self.counters: Counters | None = None
        self._values = GroupValues(groups, host_bytes) if groups else None
        self._sampled: Shared = ({}, ())
        self._sampled_tick = -1

    @property
    def path(self) -> str | None:
        """Path of the innermost group; None if it is not visible."""
        return self.groups[0].path if self.groups else None

    def values(self, tick: int, host: Mapping[str, float]) -> Shared:
        """Metrics of group and machine, read once per tick of the sampler; as a mapping and as a part of a row."""
        if tick != self._sampled_tick:
            found: dict[str, float] = {}
            if self._values is not None:
                with contextlib.suppress(SourceUnavailable):
                    found = self._values.used()
            found = {**found, **host}
            self._sampled = found, tuple(found.get(name, math.nan) for name in SHARED_COLUMNS)
            self._sampled_tick = tick
        return self._sampled

    def poll(self, host: Mapping[str, float]) -> None:
        """Read limits and counters again."""
        if self._values is not None:
            self._values.refresh()
        self.counters = self._read(host)

    def read_now(self) -> Counters:
        """Current counters of group and machine."""
        host: dict[str, float] = {}
        # A new collector, because an existing one caches its kill counter for a second.
        with contextlib.suppress(SourceUnavailable), contextlib.closing(HostCollector()) as fresh:
            host = fresh.collect()
        return self._read(host)

    def _read(self, host: Mapping[str, float]) -> Counters:
        def known(name: str) -> int | None:
            return int(host[name]) if name in host else None

        total, used = known("host.swap_total_bytes"), known("host.swap_used_bytes")
        return Counters(
            time=time.time(),
            groups=tuple(GroupCounters(**group.counters()) for group in self.groups),
            host_oom_kill_count=known("host.oom_kill_count"),
            host_available_bytes=known("host.available_bytes"),
            host_total_bytes=known("host.total_bytes"),
            swap_total_bytes=total,
            swap_free_bytes=None if total is None or used is None else total - used,
            group_pids=self.groups[0].pids() if self.groups else None,
        )


class SharedGroups:
    """All groups of tracked kernels; a group is dropped with its last kernel.

    Attributes:
        none: For a kernel whose group is not visible: only the machine.
    """

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[str, int], SharedGroup] = WeakValueDictionary()
        self._host_bytes = machine_bytes()
        self._lock = threading.Lock()
        self.none = SharedGroup((), self._host_bytes)

    def at(self, place: tuple[str, int]) -> SharedGroup:
        """The group with this path and version.

        Raises:
            SourceUnavailable: It is not visible here.
        """
        with self._lock:
            found = self._known.get(place)
            if found is None:
                found = self._known[place] = SharedGroup(groups_at(*place), self._host_bytes)
            return found
