"""Merges the server's observations and the kernel's recording of a metric into one timeline; each point has its source.

Between the server's first and last row only the server's rows are used. Older and newer points are self-reported by the
kernel: good enough to draw, but never enough for a *certain* finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..decode import dict_of, number_of
from .series import StretchSummary

Source = Literal["server", "kernel"]

# The metrics of summaries that are kept in a bundle, because curves show them.
MAIN_METRICS = (
    "process.rss_bytes",
    "process.children_rss_bytes",
    "process.swap_bytes",
    "cgroup.used_bytes",
    "host.available_bytes",
)
LOWEST = ".min"
HIGHEST = ".max"
_AFTER_CRASH_SECONDS = 1.0

Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """A metric at a moment, or over the stretch of time that ends at that moment.

    Attributes:
        time: Unix seconds.
        lowest, highest: Extreme values; equal for a single sample.
        source: Origin of the value.
    """

    time: float
    lowest: float
    highest: float
    source: Source


def timeline(name: str, server: Table, kernel: Table, died: float) -> list[Point]:
    """All points of a metric, sorted by time.

    Args:
        name: Name of the metric.
        server: ``columns`` and ``rows`` as in :class:`~.facts.ServerFacts`; empty if there was no watcher.
        kernel: ``samples``, ``seconds`` and ``minutes`` as in a bundle, each with ``columns`` and ``rows``; may be forged.
        died: Unix seconds of the crash; later points from the kernel are left out.
    """
    seen = sorted(
        (Point(when, value, value, "server") for when, value in column(server, name)), key=_time
    )
    claimed: list[Point] = []
    # From fine to coarse: a summary is used only if it is older than all finer points.
    for resolution in ("samples", "seconds", "minutes"):
        found = sorted(_claims(dict_of(kernel.get(resolution)), name), key=_time)
        oldest = claimed[0].time if claimed else died + _AFTER_CRASH_SECONDS
        claimed = [point for point in found if point.time < oldest] + claimed
    times = [point.time for point in seen]
    missed = [p for p in claimed if not times or not times[0] <= p.time <= times[-1]]
    return sorted(seen + missed, key=_time)


def _time(point: Point) -> float:
    return point.time


def _claims(table: Table, name: str) -> Iterator[Point]:
    for when, value in column(table, name):
        yield Point(when, value, value, "kernel")
    highest = dict(column(table, name + HIGHEST))
    for when, value in column(table, name + LOWEST):
        if when in highest:
            yield Point(when, value, highest[when], "kernel")


def column(table: Table, name: str) -> Iterator[tuple[float, float]]:
    """(Unix seconds, value) of one column of a table with ``columns`` and ``rows``; only known, valid values."""
    columns, rows = table.get("columns"), table.get("rows")
    if (
        not isinstance(columns, (list, tuple))
        or name not in columns
        or not isinstance(rows, (list, tuple))
    ):
        return
    position = list(columns).index(name)
    for row in rows:
        if isinstance(row, (list, tuple)) and len(row) > position:
            when, value = number_of(row[0]), number_of(row[position])
            if when is not None and value is not None:
                yield when, value


def thinned_table(summaries: list[StretchSummary], limit: int) -> dict[str, Any]:
    """Summaries as a table with ``<metric>.min`` and ``<metric>.max`` of the main metrics.

    Args:
        limit: Largest number of rows. Above it, adjacent rows are merged: lowest minimum, highest maximum.
    """
    stretch = max(1, -(-len(summaries) // limit))
    known = summaries[0].columns if summaries else ()
    names = [name for name in MAIN_METRICS if name in known]
    rows: list[list[float | None]] = []
    for start in range(0, len(summaries), stretch):
        together = summaries[start : start + stretch]
        lows, highs = [s.minimum for s in together], [s.maximum for s in together]
        row: list[float | None] = [together[-1].time]
        for name in names:
            row.append(min((low[name] for low in lows if name in low), default=None))
            row.append(max((high[name] for high in highs if name in high), default=None))
        rows.append(row)
    columns = ["time", *(name + part for name in names for part in (LOWEST, HIGHEST))]
    return {"columns": columns, "rows": rows}
