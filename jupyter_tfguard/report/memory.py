"""Memory over time in a report: the curve of the kernel, other curves, and the events in that time.

The journal may be forged: values of the wrong type are left out, and of too many events only the newest are kept.
"""

from __future__ import annotations

import math
from typing import Any

from ..diagnosis import activity
from ..diagnosis.evidence import Evidence
from ..diagnosis.limits_seen import use_of
from ..diagnosis.memory import memory_source, when_of_old_peak
from ..memory.limits import LimitKind, named
from ..record.marks import MarkReader
from ..record.timeline import Point
from ..units import human_bytes, human_seconds
from . import documents

MEMORY_POINTS_LIMIT = 600
CURVE_POINTS_LIMIT = 300
_CURVES_LIMIT = 16  # two for each card of a machine with eight
# Events of each kind; the axis has no room for more.
_EVENTS_LIMITS = {
    "cell": 30,
    "fit": 20,
    "epoch": 30,
    "checkpoint": 20,
    "gpu_oom": 10,
    "memory_stop": 10,
    "leak": 10,
}
_WARNING_FRACTION = 0.9
_USE_TITLES = {
    LimitKind.CGROUP: "In use in the container",
    LimitKind.HOST: "In use in the machine",
    LimitKind.ADDRESS_SPACE: "Address space in use",
    LimitKind.DATA: "Data in use",
}

Json = dict[str, Any]
Samples = list[tuple[float, float]]


def memory_json(seen: Evidence) -> documents.Memory | None:
    """The data of the memory chart up to the death; None if memory was not measured."""
    points = _points(seen)
    if not points:
        return None
    limit = seen.limit()
    since = points[0].time
    return {
        "samples": _drawn([(p.time, p.highest) for p in points], MEMORY_POINTS_LIMIT),
        "limit_bytes": limit.size_bytes if limit else None,
        "limit_name": limit.name if limit else None,
        # An older peak would not fit the curve, nor the sentence about it.
        "peak_bytes": int(max(p.highest for p in points))
        if when_of_old_peak(seen)
        else seen.peak(),
        "events": _events(seen, since),
        "curves": _curves(seen, since),
        "crash_time": seen.died,
        "source": memory_source(seen).value,
    }


def _points(seen: Evidence) -> list[Point]:
    """Resident memory over the last minutes, or since the start of the running cell if that is longer."""
    points = [point for point in seen.timeline("process.rss_bytes") if point.highest > 0]
    recent = seen.series("process.rss_bytes")
    begin = recent[0][0] if recent else -math.inf
    first = _first_since(begin, points)
    cell = activity.last_cell(seen)
    if cell is not None and cell.running and cell.time is not None and cell.time < begin:
        # Include one point before the cell, so that the curve covers the start of the cell.
        first = max(0, _first_since(cell.time, points) - 1)
    return points[first:]


def _first_since(moment: float, points: list[Point]) -> int:
    return next((i for i, point in enumerate(points) if point.time >= moment), len(points))


def _drawn(samples: Samples, most: int) -> list[list[float]]:
    """At most `most` of the samples: the first, the last, and the highest of each section between."""
    inner = samples[1:-1]
    stretch = max(1, -(-len(inner) // (most - 2)))
    parts = [inner[i : i + stretch] for i in range(0, len(inner), stretch)]
    highest = [max(part, key=lambda sample: sample[1]) for part in parts]
    kept = [*samples[:1], *highest, *samples[1:][-1:]]
    return [[round(when, 3), int(value)] for when, value in kept]


def _curves(seen: Evidence, since: float) -> list[documents.Curve]:
    """Curves of the use that the limit counts, child processes, and each GPU; a curve that is always 0 is left out."""

    def curve(
        name: str, title: str, samples: Samples, limit_bytes: float | None = None
    ) -> documents.Curve:
        within = [(when, value) for when, value in samples if since <= when <= seen.died + 1]
        return {
            "name": name,
            "title": title,
            "unit": "bytes",
            "samples": _drawn(within, CURVE_POINTS_LIMIT),
            "limit_bytes": int(limit_bytes) if limit_bytes else None,
            "limit_name": f"{title.split(':')[0]} memory" if limit_bytes else None,
        }

    limit = seen.limit()
    title = _USE_TITLES[LimitKind.CGROUP if limit is None else limit.kind]
    children = [(p.time, p.highest) for p in seen.timeline("process.children_rss_bytes")]
    found = [
        curve("limit.used_bytes", title, [] if limit is None else use_of(seen, limit)),
        curve("process.children_rss_bytes", "Child processes", children),
    ]
    for place, gpu in enumerate(seen.gpus):
        own, total = gpu.series("own_bytes"), gpu.memory_total_bytes
        # If the kernel held no memory on a card, its curve is about other programs.
        if any(value > 0 for _, value in own):
            card, used = gpu.short_title, gpu.series("memory_used_bytes")
            found.append(curve(f"gpu{place}.own_bytes", f"{card}: this kernel", own, total))
            found.append(curve(f"gpu{place}.memory_used_bytes", f"{card}: in use", used, total))
    return [c for c in found if any(value > 0 for _, value in c["samples"])][:_CURVES_LIMIT]


def _events(seen: Evidence, since: float) -> list[documents.Moment]:
    """Cells, fits, epochs, checkpoints and the failures at the end, by time."""
    found = [e for e in _of_journal(seen) if since <= e["time"] <= seen.died + 1]
    kept = [event for event in _endings(seen) if event["time"] >= since]
    for kind, limit in _EVENTS_LIMITS.items():
        same = [event for event in found if event["kind"] == kind]
        # Always keep the newest; keep the others at even intervals.
        kept += same[::-1][:: max(1, -(-len(same) // limit))]
    return sorted(kept, key=lambda event: float(event["time"]))


def _of_journal(seen: Evidence) -> list[documents.Moment]:
    reader = MarkReader(with_epochs=True)
    for event in seen.journal:
        reader.take(event)
    return [_event(mark.time, mark.kind, mark.label) for mark in reader.marks]


def _event(when: float, kind: str, label: str) -> documents.Moment:
    return {"time": when, "kind": kind, "label": label}


def _endings(seen: Evidence) -> list[documents.Moment]:
    found = []
    if (limit := seen.limit()) is not None:
        line = _WARNING_FRACTION * limit.size_bytes
        used = use_of(seen, limit)
        before = [0.0, *(value for _, value in used)]
        rises = [
            when for (when, value), old in zip(used, before, strict=False) if old < line <= value
        ]
        if rises:
            found.append(_event(rises[-1], "warning", "90 % of the limit"))
    if seen.hang is not None:
        found.append(_event(seen.died - seen.hang.seconds, "hang", "hang"))
    label = "child process ended" if seen.kernel_alive else "ended"
    return [*found, _event(seen.died, "crash", label)]


def memory_sentence(report: Json) -> str | None:
    """``0.41 GiB → 3.98 GiB in 41 s; limit 4.00 GiB (container limit)``; None without samples."""
    memory = report.get("memory")
    if not memory or not memory["samples"]:
        return None
    (start, first), (end, _) = memory["samples"][0], memory["samples"][-1]
    text = f"{human_bytes(first)} → {human_bytes(memory.get('peak_bytes'))} in {human_seconds(end - start)}"
    if memory["limit_bytes"]:
        text += f"; limit {named(human_bytes(memory['limit_bytes']), memory['limit_name'])}"
    return text
