"""Functions that the memory rules share: how close memory use came to the limit, and how much it grew."""

from __future__ import annotations

from ..memory.limits import Limit, LimitKind
from ..units import human_bytes, human_seconds
from .activity import Cell, Fit, last_cell, last_fit
from .evidence import Evidence
from .finding import Fact, Source
from .limits_seen import use_of

NEAR_LIMIT_FRACTION = 0.85
SPARE_BYTES = 64 * 1024 * 1024
_SHORT_FRACTION = 0.08
_LAST_MOMENTS_SECONDS = 2.0
# Child processes are measured every two seconds.
_LAST_OF_CHILDREN_SECONDS = 4.0
_LARGE_FRACTION = 0.5
# A peak this much before the death is not of its end.
_OLD_SECONDS = 60.0
_SAME_FRACTION = 0.98


def memory_source(seen: Evidence) -> Source:
    """Source of the memory values in this bundle."""
    return Source.SERVER if (seen.server or {}).get("rows") else Source.KERNEL


def use_at_crash(seen: Evidence) -> int | None:
    """Highest use of the memory that the limit counts, in the last moments before the death; None = unknown.

    A dying process gives its memory back before its end is seen, so the last sample alone may be too low. A peak of the
    group counts only if it rose after the last reading: it is of its whole life, often of days.
    """
    limit = seen.memory_limit()
    if limit is None:
        return None
    points = [point for point in use_of(seen, limit) if point[0] <= seen.died]
    newest = points[-1][0] if points else 0.0
    tops = [value for when, value in points if when >= newest - _LAST_MOMENTS_SECONDS]
    if limit.kind is LimitKind.HOST:
        available = seen.host("host_available_bytes")
        tops += [limit.size_bytes - available] if available is not None else []
    for group in seen.groups:
        before, after = group.peaks
        if group.limit_bytes == limit.size_bytes and before and after and after > before:
            tops.append(after)
    return int(max(tops)) if tops else None


def near_limit(seen: Evidence) -> bool | None:
    """True if memory use was near the limit when the kernel died; None if either is unknown."""
    limit, used = seen.memory_limit(), use_at_crash(seen)
    if limit is None or used is None:
        return None
    return used >= NEAR_LIMIT_FRACTION * limit.size_bytes


def came_near_limit(seen: Evidence, *, claimed: bool = True) -> bool | None:
    """True if memory use was ever near the limit; None if either is unknown. For counters that say that it was hit.

    Args:
        claimed: Whether self-reported values count when the server has none, as in :meth:`Evidence.series`.
    """
    limit, reached = seen.memory_limit(), _reached_bytes(seen, claimed=claimed)
    if limit is None or reached is None:
        return None
    return reached >= NEAR_LIMIT_FRACTION * limit.size_bytes


def _reached_bytes(seen: Evidence, *, claimed: bool) -> int | None:
    """Highest known use of the memory that the limit counts: by its cgroup, or by the whole machine."""
    limit = seen.memory_limit()
    if limit is None:
        return seen.peak(claimed=claimed)
    if limit.kind is LimitKind.HOST:
        lowest = lowest_available(seen, claimed=claimed)
        return limit.size_bytes - int(lowest) if lowest is not None else seen.peak(claimed=claimed)
    tops = [value for _, value in seen.series("cgroup.used_bytes", claimed=claimed)]
    for group in seen.groups:
        if group.limit_bytes is not None:
            tops += [peak for peak in group.peaks if peak]
    return int(max(tops)) if tops else seen.peak(claimed=claimed)


def lowest_available(seen: Evidence, *, claimed: bool = True) -> float | None:
    """Lowest available memory of the machine in the last samples, bytes. `claimed` as in :func:`came_near_limit`."""
    known = [value for _, value in seen.series("host.available_bytes", claimed=claimed)[-50:]]
    before = seen.host("host_available_bytes")
    return min([*known, *([before] if before is not None else [])], default=None)


def host_was_short(seen: Evidence) -> bool:
    """True if the machine had almost no available memory before the crash."""
    total, available = seen.host("host_total_bytes"), lowest_available(seen)
    return total is not None and available is not None and available < _SHORT_FRACTION * total


def peak_fact(seen: Evidence) -> Fact | None:
    """``Held at most 3.9 GiB of 4.0 GiB allowed (container limit)``."""
    peak, limit = seen.peak(), seen.memory_limit()
    if peak is None:
        return None
    text = f"The kernel's peak memory was {human_bytes(peak)}"
    if (when := when_of_old_peak(seen)) is not None:
        held = seen.last("process.rss_bytes")
        text += f", {when}" + (f"; it held {human_bytes(held)} at the end" if held else "")
    if limit is not None:
        text += f"; the limit is {limit.text()}"
        if peak > limit.size_bytes:
            text += "; the peak may include mapped files that the limit does not count"
    binding = seen.limit()
    if binding is not None and binding.is_ulimit:
        used = max((value for _, value in use_of(seen, binding)), default=None)
        text += f"; {human_bytes(used)} of its {binding.name} of {human_bytes(binding.size_bytes)} was in use"
    return Fact(memory_source(seen), text)


def children_fact(seen: Evidence) -> Fact | None:
    """What child processes held at the end, if that was at least half of what the kernel itself held; else None.

    A page that processes share counts in each of them, so no more is reported than the group used beside the kernel.
    """
    limit, used = seen.memory_limit(), use_at_crash(seen)
    own = seen.last("process.rss_bytes")
    if own is None or used is None or limit is None or limit.kind is LimitKind.HOST:
        return None
    sizes = seen.timeline("process.children_rss_bytes")
    last = [p.highest for p in sizes if 0 <= seen.died - p.time <= _LAST_OF_CHILDREN_SECONDS]
    held = min(max(last, default=0.0), used - own)
    if held < max(SPARE_BYTES, _LARGE_FRACTION * own):
        return None
    text = f"At the end its child processes held {human_bytes(held)}, the kernel itself {human_bytes(own)}"
    return Fact(memory_source(seen), text)


def growth_fact(seen: Evidence) -> Fact | None:
    """How much memory grew since the start of the fit, or else of the cell."""
    start = _start(seen)
    peak = _peak_of_cell(seen)
    if start is None or peak is None:
        return None
    name, base = start
    if peak - base < SPARE_BYTES:
        return None
    return Fact(
        Source.KERNEL,
        f"It grew by {human_bytes(peak - base)} after the start of {name} (from {human_bytes(base)})",
    )


def _start(seen: Evidence) -> tuple[str, int] | None:
    fit: Fit | None = last_fit(seen)
    if fit is not None and fit.rss_bytes:
        return f"the {fit.name}", fit.rss_bytes
    cell: Cell | None = last_cell(seen)
    if cell is not None and cell.running and cell.rss_bytes:
        return cell.name, cell.rss_bytes
    return None


def _peak_of_cell(seen: Evidence) -> int | None:
    """Highest resident memory since the last cell began; the peak of an earlier cell may have been higher."""
    peak, cell = seen.peak(), last_cell(seen)
    if cell is None or not cell.peak_bytes or peak is None or peak > cell.peak_bytes:
        return peak  # the peak rose in this cell, or it is not known that it did not
    began = cell.time or 0.0
    sizes = [size for when, size in seen.series("process.rss_bytes") if when >= began]
    return int(max(sizes)) if sizes else None


def machine_limit(seen: Evidence) -> Limit | None:
    """Total memory of the machine; None when it was not recorded."""
    total = seen.host("host_total_bytes") or seen.last("host.total_bytes")
    return Limit(int(total), LimitKind.HOST) if total else None


def peak_chips(seen: Evidence) -> tuple[str, ...]:
    """``peak 3.98 GiB``, or ``peak 3.98 GiB, 12 min before``, when it is known."""
    peak, when = seen.peak(), when_of_old_peak(seen)
    return (f"peak {human_bytes(peak)}" + (f", {when}" if when else ""),) if peak else ()


def when_of_old_peak(seen: Evidence) -> str | None:
    """``12 min before`` or ``before this cell``; None for a peak of the end, or at an unknown time."""
    peak = seen.peak()
    if peak is None:
        return None
    high = [
        point.time
        for point in seen.timeline("process.rss_bytes")
        if point.highest >= _SAME_FRACTION * peak
    ]
    if high:
        passed = seen.died - max(high)
        return f"{human_seconds(passed)} before" if passed > _OLD_SECONDS else None
    cell = last_cell(seen)
    if cell is None or not cell.peak_bytes or cell.peak_bytes < peak:
        return None
    return "before this cell" if cell.running else "before the last cell"
