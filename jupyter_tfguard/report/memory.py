"""The curves of a report and what stands on their axis: the kernel's memory, what is beside it, and what happened meanwhile."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

from ..diagnosis import activity
from ..diagnosis.curves import Curve, curves
from ..diagnosis.evidence import Evidence
from ..diagnosis.memory import memory_source
from ..diagnosis.timeline_events import timeline_events
from ..limits import Limit
from ..record.timeline import Point
from ..units import human_bytes, human_seconds

MEMORY_POINTS_LIMIT = 600
CURVE_POINTS_LIMIT = 300

Json = dict[str, Any]


def memory_json(seen: Evidence) -> Json | None:
    """What is drawn of the memory until the death; None where nobody measured it."""
    points = _curve(seen)
    if not points:
        return None
    limit = seen.limit()
    first = points[0].time
    return {
        "samples": [
            [round(when, 3), int(value)]
            for when, value in _highest([(p.time, p.highest) for p in points], MEMORY_POINTS_LIMIT)
        ],
        "sources": _sources(points),
        "limit_bytes": limit[0] if limit else None,
        "limit_name": limit[1] if limit else None,
        "peak_bytes": seen.peak_bytes,
        "events": [dataclasses.asdict(event) for event in timeline_events(seen, first)],
        "curves": [_curve_json(curve) for curve in curves(seen, first)],
        "died": seen.died,
        "source": memory_source(seen).value,
    }


def _curve_json(curve: Curve) -> Json:
    return {
        "name": curve.name,
        "title": curve.title,
        "unit": "bytes",
        "samples": [
            [round(when, 3), int(value)]
            for when, value in _highest(curve.samples, CURVE_POINTS_LIMIT)
        ],
        "limit_bytes": curve.limit_bytes,
        "limit_name": curve.limit_name,
    }


def _curve(seen: Evidence) -> list[Point]:
    """Resident memory over the last minutes, and back to the beginning of the cell that was running."""
    points = [point for point in seen.timeline("process.rss_bytes") if point.highest > 0]
    recent = seen.series("process.rss_bytes")
    begin = recent[0][0] if recent else -math.inf
    first = _first_since(begin, points)
    cell = activity.last_cell(seen)
    if cell is not None and cell.running and cell.started is not None and cell.started < begin:
        # One point from before the cell, so that its beginning is on the curve.
        first = max(0, _first_since(cell.started, points) - 1)
    return points[first:]


def _first_since(moment: float, points: list[Point]) -> int:
    return next((i for i, point in enumerate(points) if point.time >= moment), len(points))


def _sources(points: list[Point]) -> list[Json]:
    """Who saw which part of the curve: ``{"source", "since", "until"}``, Unix seconds, by time."""
    found = []
    for source, part in itertools.groupby(points, key=lambda point: point.source):
        moments = [point.time for point in part]
        found.append({"source": source, "since": moments[0], "until": moments[-1]})
    return found


def _highest(samples: list[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """At most `most` of the samples: the first, the last, and the highest of each stretch between."""
    inner = samples[1:-1]
    stretch = -(-len(inner) // (most - 2))
    if stretch <= 1:
        return samples
    parts = (inner[i : i + stretch] for i in range(0, len(inner), stretch))
    return [samples[0], *(max(part, key=lambda sample: sample[1]) for part in parts), samples[-1]]


def memory_sentence(report: Json) -> str | None:
    """``0.41 GiB → 3.98 GiB in 41 s; limit 4.00 GiB (container limit)``; None without samples."""
    memory = report.get("memory")
    if not memory or not memory["samples"]:
        return None
    (start, first), (end, _) = memory["samples"][0], memory["samples"][-1]
    text = f"{human_bytes(first)} → {human_bytes(memory.get('peak_bytes'))} in {human_seconds(end - start)}"
    if memory["limit_bytes"]:
        limit = Limit(memory["limit_bytes"], memory["limit_name"])
        text += f"; limit {limit.text(human_bytes(limit.size_bytes))}"
    return text
