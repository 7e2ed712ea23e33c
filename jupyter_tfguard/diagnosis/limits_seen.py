"""The limits that applied to a kernel: of its container, of the machine, of the process itself."""

from __future__ import annotations

from ..memory.limits import ULIMITS, Limit, LimitKind, memory_limit
from .observed import Observed

_MEMORY = (
    "cgroup.limit_bytes",
    "cgroup.used_bytes",
    "cgroup.reclaimable_bytes",
    "host.total_bytes",
    "host.available_bytes",
    "process.rss_bytes",
)


def last_values(seen: Observed) -> dict[str, float]:
    """The newest known values of the memory metrics. A limit that no sample has is taken from the counters."""
    found = {name: value for name in _MEMORY if (value := seen.last(name)) is not None}
    sizes = [group.limit_bytes for group in seen.groups if group.limit_bytes]
    if sizes:
        found.setdefault("cgroup.limit_bytes", min(sizes))
    if (total := seen.host("host_total_bytes")) is not None:
        found["host.total_bytes"] = total
    return found


def memory_limit_of(seen: Observed) -> Limit | None:
    """The limit of resident memory that binds the kernel: of its container or of the machine."""
    return memory_limit(last_values(seen))


def binding_limit_of(seen: Observed) -> Limit | None:
    """The limit with the least headroom at the peak of its use, of memory or of the process."""
    memory = memory_limit_of(seen)
    found = _ulimits_of(seen)
    if memory is not None:
        used = [value for _, value in use_of(seen, memory)]
        found.insert(0, (memory, max(used, default=0.0)))
    best = min(found, key=lambda pair: pair[0].size_bytes - pair[1], default=None)
    return None if best is None else best[0]


def _ulimits_of(seen: Observed) -> list[tuple[Limit, float]]:
    """Limits of the process, each with its highest recorded use."""
    found = []
    for kind, (used_metric, limit_metric) in ULIMITS.items():
        used = [value for _, value in seen.series(used_metric)]
        limit = seen.last(limit_metric)
        if used and limit and limit > 0:
            found.append((Limit(int(limit), kind), max(used)))
    return found


def use_of(seen: Observed, limit: Limit) -> list[tuple[float, float]]:
    """(Unix seconds, bytes) of the memory that a limit counts, without reclaimable file cache."""
    if limit.kind in ULIMITS:
        return [(p.time, p.highest) for p in seen.timeline(ULIMITS[limit.kind][0])]
    if limit.kind is LimitKind.HOST:
        free = seen.timeline("host.available_bytes")
        return [(point.time, max(0.0, limit.size_bytes - point.lowest)) for point in free]
    cache = dict(seen.series("cgroup.reclaimable_bytes"))
    used = seen.timeline("cgroup.used_bytes")
    return [(point.time, max(0.0, point.highest - cache.get(point.time, 0.0))) for point in used]
