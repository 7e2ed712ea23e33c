"""The JSON of a report and of its list entry, which the panel, ``list --json`` and the other renderers read."""

from __future__ import annotations

import datetime
import math
from typing import Any, cast

from ..decode import dict_of, list_of, text_of, whole_of
from ..diagnosis import activity
from ..diagnosis.checkpoint import doubt, last_checkpoint, resume_code
from ..diagnosis.evidence import Evidence
from ..diagnosis.finding import Advice, Diagnosis, Fact
from ..diagnosis.python_stacks import FAULT_SIGNALS
from ..units import human_count, human_seconds
from . import documents
from .frames import folded_frames, without_harmless
from .memory import memory_json

NATIVE_LINES_LIMIT = 60
STACK_LINES_LIMIT = 120
_VERSIONS_LIMIT = 50
_CELL_ID_LIMIT = 100
_PATCHED_LIMIT = 10
_LAST_MOMENT = 253_402_300_799.0  # 9999-12-31 23:59:59 UTC

Json = dict[str, Any]


def _summary(bundle: Json, seen: Evidence, diagnosis: Diagnosis) -> documents.Summary:
    best = diagnosis.best
    identity = seen.identity
    return {
        "id": bundle["id"],
        "kernel_id": text_of(identity.get("kernel_id")),
        "kernel_name": text_of(identity.get("kernel_name")),
        "pid": whole_of(identity.get("pid")),
        "notebook_path": text_of(identity.get("notebook_path")),
        "cause": best.cause,
        "confidence": best.confidence.value,
        "title": best.title,
        "short_title": best.short_title,
        "because": [fact.text for fact in best.because],
        "signal": seen.first_signal,
        "where": activity.where(seen),
        "cell": _running_cell(seen),
        "crashed_at": utc_text(seen.died),
        "kernel_alive": seen.kernel_alive,
        "next_step": best.advice[0].title if best.advice else None,
    }


def _running_cell(seen: Evidence) -> documents.RunningCell | None:
    """The cell that ran when the kernel died, which is marked in its notebook; None when no cell ran."""
    cell = activity.last_cell(seen)
    if cell is None or not cell.running:
        return None
    cell_id = cell.cell_id and cell.cell_id[:_CELL_ID_LIMIT]
    return {"cell_id": cell_id, "execution_count": cell.execution_count}


def to_report(bundle: Json, diagnosis: Diagnosis) -> Json:
    """The whole report, including the fields of the list entry."""
    return to_entry_and_report(bundle, diagnosis)[1]


def to_entry_and_report(bundle: Json, diagnosis: Diagnosis) -> tuple[Json, Json]:
    """The list entry and the report; the bundle is read only once."""
    seen = Evidence(bundle)
    summary = _summary(bundle, seen, diagnosis)
    report = _report(summary, seen, diagnosis)
    # Renderers also read reports that other versions saved.
    return cast(Json, summary), cast(Json, report)


def _report(summary: documents.Summary, seen: Evidence, diagnosis: Diagnosis) -> documents.Report:
    best = diagnosis.best
    metrics = activity.metrics_by_epoch(seen)
    return {
        **summary,
        "schema_version": 1,
        "chips": list(best.chips),
        "evidence": _facts(best.because),
        "against": _facts(best.against),
        "not_checked": list(diagnosis.not_checked),
        "advice": _advice(best.advice),
        "other_findings": _others(diagnosis),
        "same_before_count": sum(cause == best.cause for _, cause in seen.earlier_deaths),
        "activity": _activity(seen),
        "memory": memory_json(seen),
        "left": {
            "metrics": _metrics_table(metrics),
            "checkpoint": _checkpoint(seen),
        },
        "arrays": [{"name": n, "bytes": size} for n, size in activity.largest_arrays(seen)],
        "stderr_tail": without_harmless(seen.stderr_lines)[-NATIVE_LINES_LIMIT:],
        "python_stack": _python_stack(seen),
        "versions": _versions(seen.header.get("versions")),
    }


def _others(diagnosis: Diagnosis) -> list[documents.Finding]:
    """The findings after the best one, without facts and advice that an earlier finding already has."""
    said: set[Fact | Advice] = {*diagnosis.best.because, *diagnosis.best.advice}
    found: list[documents.Finding] = []
    for other in diagnosis.findings[1:]:
        found.append(
            {
                "cause": other.cause,
                "confidence": other.confidence.value,
                "title": other.title,
                "evidence": _facts(tuple(fact for fact in other.because if fact not in said)),
                "against": _facts(other.against),
                "advice": _advice(tuple(step for step in other.advice if step not in said)),
            }
        )
        said |= {*other.because, *other.advice}
    return found


def _versions(claimed: object) -> dict[str, str]:
    """Names and versions of libraries; anything else that the kernel wrote is left out."""
    found = dict_of(claimed)
    named = {name: version for name, version in found.items() if isinstance(version, str)}
    return {str(name)[:100]: named[name][:100] for name in list(named)[:_VERSIONS_LIMIT]}


def utc_text(unix_seconds: float) -> str:
    """``2026-11-21T02:14:07.123Z``; a time that cannot be represented becomes the first or last possible one."""
    known = min(max(unix_seconds, 0.0), _LAST_MOMENT)
    moment = datetime.datetime.fromtimestamp(known, datetime.timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _facts(facts: tuple[Fact, ...]) -> list[documents.Fact]:
    return [{"source": fact.source.value, "text": fact.text, "raw": fact.raw} for fact in facts]


def _advice(steps: tuple[Advice, ...]) -> list[documents.Advice]:
    return [{"title": step.title, "text": step.text, "code": step.code} for step in steps]


def _activity(seen: Evidence) -> list[documents.Row]:
    cell, fit = activity.last_cell(seen), activity.last_fit(seen)
    rows: list[tuple[str, str, bool]] = []
    if cell is not None:
        count = f"[{cell.execution_count}] " if cell.execution_count else ""
        label = "cell" if cell.running else "last cell"
        lines = (" ".join(line.split()) for line in (cell.head or "").splitlines())
        head = " ⏎ ".join(line for line in lines if line)
        rows.append((label, f"{count}{head or '(text not recorded)'}", True))
    if fit is not None:
        parts = [fit.name if fit.is_loop else f"{fit.method} of {fit.model_name or 'a model'}"]
        if fit.parameter_count:
            parts.append(f"{human_count(fit.parameter_count)} parameters")
        if fit.optimizer:
            parts.append(fit.optimizer)
        rows.append(("training", ", ".join(parts), False))
        if fit.position or not fit.is_loop:
            rows.append(("position", fit.position or "before the first step", False))
        if fit.batch_shape:
            shape = " × ".join(str(n) for n in fit.batch_shape)
            rows.append(
                ("batch", f"{shape}{', ' + fit.batch_dtype if fit.batch_dtype else ''}", False)
            )
        elif fit.batch_size:
            rows.append(("batch size", f"{fit.batch_size:,}", False))
    if cell is not None and cell.running and cell.time and seen.died >= cell.time:
        rows.append(("ran for", f"{human_seconds(seen.died - cell.time)} in this cell", False))
    if cell is not None and not cell.running:
        rows.append(("state", "no cell was running", False))
    if seen.first_signal in FAULT_SIGNALS.values() and (patched := _patched(seen)):
        rows.append(("tfguard", patched, False))
    return [{"label": label, "value": value, "code": code} for label, value, code in rows]


def _patched(seen: Evidence) -> str | None:
    """What the guard had replaced in a process that crashed in native code: it may be at fault itself."""
    stop = dict_of(dict_of(seen.header.get("guard")).get("stop"))
    names = [text for name in list_of(stop.get("patched")) if (text := text_of(name))]
    if not names:
        return None
    functions = ", ".join(names[:_PATCHED_LIMIT])
    return (
        f"had replaced memory functions of {functions} (TfGuard.stop = {text_of(stop.get('level'))!r}); "
        "with 'off' it replaces none"
    )


def _checkpoint(seen: Evidence) -> documents.Checkpoint | None:
    found = last_checkpoint(seen)
    if found is None:
        return None
    return {
        "path": found.path,
        "written_at": None if found.written is None else utc_text(found.written),
        "doubt": doubt(seen, found),
        "resume_code": resume_code(seen, found),
    }


def _metrics_table(metrics: list[tuple[int, dict[str, float]]]) -> documents.MetricsTable | None:
    if not metrics:
        return None
    names = list(dict.fromkeys(name for _, logs in metrics for name in logs))
    rows: list[list[float | str | None]] = [
        [epoch, *(_plain(logs.get(name)) for name in names)] for epoch, logs in metrics[-50:]
    ]
    return {"columns": ["epoch", *names], "rows": rows}


def _plain(number: float | None) -> float | str | None:
    """The number, or the text ``nan`` or ``inf``, which JSON numbers cannot represent but are worth showing as a loss."""
    return number if number is None or math.isfinite(number) else str(number)


def _python_stack(seen: Evidence) -> list[str]:
    return folded_frames(_whole_stack(seen))[:STACK_LINES_LIMIT]


def _whole_stack(seen: Evidence) -> list[str]:
    if seen.fault_lines:
        return _current_first(seen.fault_lines)
    if seen.exit_signal in seen.signal_texts:
        return seen.signal_texts[seen.exit_signal]
    return list(seen.hang.lines) if seen.hang is not None else []


def _current_first(lines: list[str]) -> list[str]:
    """faulthandler's text, with the crashed thread before the others."""
    start = next((i for i, line in enumerate(lines) if line.startswith("Current thread")), None)
    if start is None:
        return lines
    end = start + 1
    while end < len(lines) and lines[end].startswith("  "):
        end += 1
    return [lines[0], *lines[start:end], *lines[1:start], *lines[end:]]
