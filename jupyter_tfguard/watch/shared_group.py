"""One memory group as all kernels in it see it: what is the same for all of them is read once.

The kernels of a server mostly share one group. The sampler reads the values of samples, the slow poll the counters, the
thread of the deaths the counters after a death; each only replaces whole objects.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Mapping
from weakref import WeakValueDictionary

from ..collectors.cgroup import GroupValues
from ..collectors.host import HostCollector
from ..collectors.memory_group import MemoryGroup, groups_at, machine_bytes
from ..errors import SourceUnavailable
from ..record.facts import Counters, GroupCounters
from .history import SHARED_COLUMNS

_MISSING_SECONDS = 20.0
Shared = tuple[dict[str, float], tuple[float, ...]]


class SharedGroup:
    """A memory group with its ancestors; with no group at all, the machine alone.

    Args:
        groups: The own group first; empty = not visible.
        host_bytes: Memory of the machine.

    Attributes:
        counters: As of the last look; None before the first.
    """

    def __init__(self, groups: tuple[MemoryGroup, ...], host_bytes: float) -> None:
        self.groups = groups
        self.counters: Counters | None = None
        self._values = GroupValues(groups, host_bytes) if groups else None
        self._sampled: Shared = ({}, ())
        self._sampled_tick = -1
        self._after: Counters | None = None
        self._after_began = 0.0
        self._refresh()

    @property
    def path(self) -> str | None:
        """Of the own group; None when it is not visible."""
        return self.groups[0].path if self.groups else None

    def values(self, tick: int, host: Mapping[str, float]) -> Shared:
        """Metrics of group and machine, read once in each tick of the sampler; and the same as a part of a row."""
        if tick != self._sampled_tick:
            found: dict[str, float] = {}
            if self._values is not None:
                with contextlib.suppress(SourceUnavailable):
                    found = self._values.used()
            found = {**found, **host}
            self._sampled = found, tuple(found.get(name, math.nan) for name in SHARED_COLUMNS)
            self._sampled_tick = tick
        return self._sampled

    def look(self, host: Mapping[str, float]) -> None:
        """Read limits and counters again."""
        self._refresh()
        self.counters = self._read(host)

    def _refresh(self) -> None:
        if self._values is not None:
            self._values.refresh()

    def _read(self, host: Mapping[str, float]) -> Counters:
        pids = self.groups[0].pids() if self.groups else None
        return _counters(self.groups, host, pids)

    def counters_after(self, moment: float) -> Counters:
        """Counters read after a monotonic second; deaths of the same moment share one reading."""
        if self._after is None or self._after_began <= moment:
            self._after_began = time.monotonic()
            self._after = self._read(_host_now())
        return self._after


class SharedGroups:
    """All groups that kernels are in now; a group is forgotten with its last kernel."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[str, int], SharedGroup] = WeakValueDictionary()
        self._missing: dict[tuple[str, int], tuple[float, SourceUnavailable]] = {}
        self._none: SharedGroup | None = None
        self._host_bytes = machine_bytes()
        self._lock = threading.Lock()

    def at(self, place: tuple[str, int]) -> SharedGroup:
        """The group with this path and version.

        Raises:
            SourceUnavailable: It is not visible here.
        """
        with self._lock:
            found = self._known.get(place)
            if found is None:
                found = self._known[place] = SharedGroup(self._find(place), self._host_bytes)
            return found

    def _find(self, place: tuple[str, int]) -> tuple[MemoryGroup, ...]:
        # The list of mounts can be long, and the kernels of a server mostly lack the same group.
        now = time.monotonic()
        self._missing = {k: v for k, v in self._missing.items() if v[0] > now}
        if place in self._missing:
            raise self._missing[place][1]
        try:
            return groups_at(*place)
        except SourceUnavailable as bad:
            self._missing[place] = (now + _MISSING_SECONDS, bad)
            raise

    def none(self) -> SharedGroup:
        """What is known of a kernel whose group is not visible: the machine."""
        with self._lock:
            if self._none is None:
                self._none = SharedGroup((), self._host_bytes)
            return self._none


def _host_now() -> dict[str, float]:
    # Read anew: a collector that is kept repeats its kill counter for a second.
    with contextlib.suppress(SourceUnavailable):
        fresh = HostCollector()
        try:
            return fresh.collect()
        finally:
            fresh.close()
    return {}


def _counters(
    groups: tuple[MemoryGroup, ...],
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
        groups=tuple(GroupCounters(**group.counters()) for group in groups),
        host_oom_kill_count=known("host.oom_kill_count"),
        host_available_bytes=known("host.available_bytes"),
        host_total_bytes=known("host.total_bytes"),
        swap_total_bytes=swap_total,
        swap_free_bytes=None if swap_total is None or swap_used is None else swap_total - swap_used,
        group_pids=group_pids,
    )
