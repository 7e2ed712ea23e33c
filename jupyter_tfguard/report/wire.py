"""The JSON of a report and of its line in the list: what the panel, ``list --json`` and the other renderers read."""

from __future__ import annotations

import datetime
import itertools
import math
from typing import Any

from ..diagnosis import activity
from ..diagnosis.evidence import Evidence
from ..diagnosis.finding import Advice, Diagnosis, Fact
from ..diagnosis.memory import memory_source
from ..record.timeline import Point
from ..units import human_bytes, human_count, human_seconds

MEMORY_POINTS_LIMIT = 600
MARKS_LIMIT = 20
NATIVE_LINES_LIMIT = 60
STACK_LINES_LIMIT = 120
_VERSIONS_LIMIT = 50
_LAST_MOMENT = 253_402_300_799.0  # 9999-12-31 23:59:59 UTC

Json = dict[str, Any]


def to_entry(bundle: Json, diagnosis: Diagnosis) -> Json:
    """The report's line in the list; ``group`` is told of by ``report/grouped.py``."""
    return _entry(bundle, Evidence(bundle), diagnosis)


def _entry(bundle: Json, seen: Evidence, diagnosis: Diagnosis) -> Json:
    best = diagnosis.best
    identity = seen.identity
    return {
        "id": bundle["id"],
        "kernel_id": identity.get("kernel_id"),
        "kernel_name": identity.get("kernel_name"),
        "pid": identity.get("pid"),
        "notebook_path": identity.get("notebook_path"),
        "cause": best.cause,
        "confidence": best.confidence.value,
        "title": best.title,
        "short_title": best.short_title,
        "because": [fact.text for fact in best.because],
        "signal": seen.first_signal,
        "where": activity.where(seen),
        "died_at": utc_text(seen.died),
        "kernel_alive": seen.kernel_alive,
        "next_step": best.advice[0].title if best.advice else None,
        "group": None,
    }


def to_report(bundle: Json, diagnosis: Diagnosis) -> Json:
    """The whole report: the line in the list, and all the rest."""
    return to_entry_and_report(bundle, diagnosis)[1]


def to_entry_and_report(bundle: Json, diagnosis: Diagnosis) -> tuple[Json, Json]:
    """Both, from one look at the bundle."""
    seen = Evidence(bundle)
    entry = _entry(bundle, seen, diagnosis)
    return entry, entry | _details(seen, diagnosis)


def _details(seen: Evidence, diagnosis: Diagnosis) -> Json:
    best = diagnosis.best
    metrics = activity.metrics_by_epoch(seen)
    checkpoint = activity.last_checkpoint(seen)
    return {
        "chips": list(best.chips),
        "evidence": _facts(best.because),
        "against": _facts(best.against),
        "not_checked": list(diagnosis.not_checked),
        "advice": _advice(best.advice),
        "other_findings": [
            {
                "cause": f.cause,
                "confidence": f.confidence.value,
                "title": f.title,
                "evidence": _facts(f.because),
                "against": _facts(f.against),
                "advice": _advice(f.advice),
            }
            for f in diagnosis.findings[1:]
        ],
        "activity": _activity(seen),
        "memory": _memory(seen),
        "left": {
            "metrics": _metrics_table(metrics),
            "checkpoint": checkpoint
            and {"path": checkpoint[0], "written_at": checkpoint[1] and utc_text(checkpoint[1])},
        },
        "arrays": [{"name": n, "bytes": size} for n, size in activity.largest_arrays(seen)],
        "native_tail": seen.stderr_lines[-NATIVE_LINES_LIMIT:],
        "python_stack": _python_stack(seen),
        "versions": _versions(seen.header.get("versions")),
    }


def _versions(claimed: object) -> dict[str, str]:
    """Name and version of libraries, as text whatever the kernel wrote there."""
    if not isinstance(claimed, dict):
        return {}
    named = {name: version for name, version in claimed.items() if isinstance(version, str)}
    return {str(name)[:100]: named[name][:100] for name in list(named)[:_VERSIONS_LIMIT]}


def utc_text(unix_seconds: float) -> str:
    """``2026-11-21T02:14:07.123Z``; what lies outside of all calendars becomes their first or last moment."""
    known = min(max(unix_seconds, 0.0), _LAST_MOMENT)
    moment = datetime.datetime.fromtimestamp(known, datetime.timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _facts(facts: tuple[Fact, ...]) -> list[Json]:
    return [{"source": fact.source.value, "text": fact.text} for fact in facts]


def _advice(steps: tuple[Advice, ...]) -> list[Json]:
    return [{"title": step.title, "text": step.text, "code": step.code} for step in steps]


def _activity(seen: Evidence) -> list[Json]:
    cell, fit = activity.last_cell(seen), activity.last_fit(seen)
    rows: list[tuple[str, str | None, bool]] = []
    if cell is not None:
        count = f"[{cell.execution_count}] " if cell.execution_count else ""
        label = "cell" if cell.running else "last cell"
        head = " ".join((cell.head or "(text not recorded)").split())
        rows.append((label, f"{count}{head}", True))
    if fit is not None:
        parts = [f"{fit.what} of {fit.model_name or 'a model'}"]
        if fit.parameter_count:
            parts.append(f"{human_count(fit.parameter_count)} parameters")
        if fit.optimizer:
            parts.append(fit.optimizer)
        rows.append(("training", ", ".join(parts), False))
        rows.append(("position", fit.position or "before the first step", False))
        if fit.batch_shape:
            shape = " × ".join(str(n) for n in fit.batch_shape)
            rows.append(
                ("batch", f"{shape}{', ' + fit.batch_dtype if fit.batch_dtype else ''}", False)
            )
        elif fit.batch_size:
            rows.append(("batch size", f"{fit.batch_size:,}", False))
    if cell is not None and cell.running and cell.started and seen.died >= cell.started:
        rows.append(("ran for", f"{human_seconds(seen.died - cell.started)} in this cell", False))
    if cell is not None and not cell.running:
        rows.append(("state", "no cell was running", False))
    if seen.native_text_dropped_bytes:
        dropped = human_bytes(seen.native_text_dropped_bytes)
        rows.append(("output", f"{dropped} of native text were not passed on", False))
    return [{"label": label, "value": value, "code": code} for label, value, code in rows]


def _memory(seen: Evidence) -> Json | None:
    points = _curve(seen)
    if not points:
        return None
    limit = seen.limit()
    first = points[0].time
    return {
        "samples": [[round(point.time, 3), int(point.highest)] for point in _thinned(points)],
        "sources": _sources(points),
        "limit_bytes": limit[0] if limit else None,
        "limit_name": limit[1] if limit else None,
        "peak_bytes": seen.peak_bytes,
        "marks": [
            {"time": mark.time, "label": mark.label}
            for mark in activity.marks(seen)
            if mark.time >= first
        ][-MARKS_LIMIT:],
        "died": seen.died,
        "source": memory_source(seen).value,
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


def _thinned(points: list[Point]) -> list[Point]:
    """At most `MEMORY_POINTS_LIMIT` points: the first, the last, and the highest of each stretch between."""
    inner = points[1:-1]
    stretch = -(-len(inner) // (MEMORY_POINTS_LIMIT - 2))
    if stretch <= 1:
        return points
    parts = (inner[i : i + stretch] for i in range(0, len(inner), stretch))
    return [points[0], *(max(part, key=lambda p: p.highest) for part in parts), points[-1]]


def _metrics_table(metrics: list[tuple[int, dict[str, float]]]) -> Json | None:
    if not metrics:
        return None
    names = list(dict.fromkeys(name for _, logs in metrics for name in logs))
    rows = [[epoch, *(_plain(logs.get(name)) for name in names)] for epoch, logs in metrics[-50:]]
    return {"columns": ["epoch", *names], "rows": rows}


def _plain(number: float | None) -> float | str | None:
    """A loss that is not a number is news; JSON has no number for it, so it becomes the word ``nan`` or ``inf``."""
    return number if number is None or math.isfinite(number) else str(number)


def _python_stack(seen: Evidence) -> list[str]:
    if seen.fault_lines:
        return _current_first(seen.fault_lines)[:STACK_LINES_LIMIT]
    for name, lines in seen.signal_texts.items():
        if name == seen.exit_signal:
            return lines[:STACK_LINES_LIMIT]
    return list(seen.hang.lines)[:STACK_LINES_LIMIT] if seen.hang is not None else []


def _current_first(lines: list[str]) -> list[str]:
    """faulthandler's text with the thread that crashed before the others."""
    start = next((i for i, line in enumerate(lines) if line.startswith("Current thread")), None)
    if start is None:
        return lines
    end = start + 1
    while end < len(lines) and lines[end].startswith("  "):
        end += 1
    return [lines[0], *lines[start:end], *lines[1:start], *lines[end:]]


def memory_sentence(report: Json) -> str | None:
    """``0.41 GiB → 3.98 GiB in 41 s; limit 4.00 GiB (container limit)``; None without samples."""
    memory = report.get("memory")
    if not memory or not memory["samples"]:
        return None
    (start, first), (end, _) = memory["samples"][0], memory["samples"][-1]
    text = f"{human_bytes(first)} → {human_bytes(memory.get('peak_bytes'))} in {human_seconds(end - start)}"
    if memory["limit_bytes"]:
        text += f"; limit {human_bytes(memory['limit_bytes'])} ({memory['limit_name']})"
    return text
