"""The limits that applied to a kernel: of its container, of the machine, of the process itself."""

from __future__ import annotations

from ..limits import MACHINE_MEMORY, ULIMITS, Limit, binding_limit
from .observed import Observed


def memory_limit_of(seen: Observed) -> Limit | None:
    """The limit of resident memory that applies to the kernel: its container's or the machine's."""
    limits = [group.limit_bytes for group in seen.groups if group.limit_bytes]
    if not limits and (known := seen.last("cgroup.limit_bytes")):
        limits = [int(known)]
    total = seen.host("host_total_bytes") or seen.last("host.total_bytes")
    return binding_limit(min(limits, default=None), total)


def tightest_limit_of(seen: Observed) -> Limit | None:
    """The limit of memory, or of the process if a larger fraction of that was used at the peak."""
    memory, ulimits = memory_limit_of(seen), _ulimits_of(seen)
    best, fullness = memory, 0.0
    if memory is not None and ulimits:
        used = [value for _, value in use_of(seen, memory)]
        fullness = max(used, default=0.0) / memory.size_bytes
    for limit, used_bytes in ulimits:
        if used_bytes / limit.size_bytes > fullness:
            best, fullness = limit, used_bytes / limit.size_bytes
    return best


def _ulimits_of(seen: Observed) -> list[tuple[Limit, float]]:
    """Limits of the process, each with its highest recorded use."""
    found = []
    for name, (used_metric, limit_metric) in ULIMITS.items():
        used = [value for _, value in seen.series(used_metric)]
        limit = seen.last(limit_metric)
        if used and limit and limit > 0:
            found.append((Limit(int(limit), name), max(used)))
    return found


def use_of(seen: Observed, limit: Limit) -> list[tuple[float, float]]:
    """(Unix seconds, bytes) of the memory that a limit counts, without reclaimable file cache."""
    if limit.name in ULIMITS:
        return [(p.time, p.highest) for p in seen.timeline(ULIMITS[limit.name][0])]
    if limit.name == MACHINE_MEMORY:
        free = seen.timeline("host.available_bytes")
        return [(point.time, max(0.0, limit.size_bytes - point.lowest)) for point in free]
    cache = dict(seen.series("cgroup.reclaimable_bytes"))
    used = seen.timeline("cgroup.used_bytes")
    return [(point.time, max(0.0, point.highest - cache.get(point.time, 0.0))) for point in used]
