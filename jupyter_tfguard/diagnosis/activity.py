"""What the kernel was doing when it died, from its journal: the cell, the fit, the step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..record.marks import Mark, MarkReader
from .evidence import Evidence

_MARK_LIMIT = 100


@dataclass(frozen=True)
class Cell:
    """The cell that ran, or the last one that did. Unknown is None."""

    execution_count: int | None
    head: str | None
    started: float | None
    rss_bytes: int | None
    running: bool

    @property
    def name(self) -> str:
        """``cell [12]``."""
        return f"cell [{self.execution_count}]" if self.execution_count else "a cell"


@dataclass(frozen=True)
class Fit:
    """The fit, evaluate or predict that ran. Unknown is None; epoch and step count from 1."""

    what: str
    model_name: str | None
    parameter_count: int | None
    optimizer: str | None
    batch_size: int | None
    batch_shape: tuple[int, ...] | None
    batch_dtype: str | None
    epochs: int | None
    epoch: int | None
    steps: int | None
    step: int | None
    started: float | None
    rss_bytes: int | None
    running: bool

    @property
    def position(self) -> str | None:
        """``epoch 1 of 10, step 3 of 5``; None before the first step."""
        parts = []
        if self.epoch and self.what == "fit":
            parts.append(
                f"epoch {self.epoch} of {self.epochs}" if self.epochs else f"epoch {self.epoch}"
            )
        if self.step:
            parts.append(f"step {self.step} of {self.steps}" if self.steps else f"step {self.step}")
        return ", ".join(parts) or None


def last_cell(seen: Evidence) -> Cell | None:
    """The cell that was running, else the last that ended; None when the journal names none."""
    start: dict[str, Any] | None = None
    running = False
    for event in _events(seen):
        if event.get("kind") == "cell_start":
            start, running = event, True
        elif event.get("kind") == "cell_end":
            running = False
    if start is None:
        return None
    head = start.get("head")
    return Cell(
        execution_count=_int(start.get("execution_count")),
        head=head if isinstance(head, str) and head.strip() else None,
        started=_float(start.get("t")),
        rss_bytes=_int(start.get("rss_bytes")),
        running=running,
    )


def last_fit(seen: Evidence) -> Fit | None:
    """The fit, evaluate or predict that was running, else None: a finished one explains no death."""
    start: dict[str, Any] = {}
    for event in _events(seen):
        kind = event.get("kind")
        if kind == "fit_start":
            start = dict(event)
        elif kind == "fit_ready" and start and event.get("fit_id") == start.get("fit_id"):
            known = {
                k: v
                for k, v in event.items()
                if v is not None and k not in ("n", "t", "m", "kind", "rss_bytes")
            }
            start |= known
        elif kind == "fit_end" and start and event.get("fit_id") == start.get("fit_id"):
            start = {}
    if not start:
        return None
    progress = (seen.kernel or {}).get("progress")
    if not isinstance(progress, dict) or progress.get("fit_id") != start.get("fit_id"):
        progress = {}
    both = start | {k: v for k, v in progress.items() if v is not None}
    shape = both.get("batch_shape")
    return Fit(
        what=str(both.get("what") or "fit"),
        model_name=_text(both.get("model_name")),
        parameter_count=_int(both.get("parameter_count")),
        optimizer=_text(both.get("optimizer")),
        batch_size=_int(both.get("batch_size")),
        batch_shape=tuple(int(n) for n in shape if _int(n) is not None)
        if isinstance(shape, list)
        else None,
        batch_dtype=_text(both.get("batch_dtype")),
        epochs=_int(both.get("epochs")),
        epoch=_int(progress.get("epoch")),
        steps=_int(both.get("steps")),
        step=_int(progress.get("step")),
        started=_float(start.get("t")),
        rss_bytes=_int(start.get("rss_bytes")),
        running=True,
    )


def where(seen: Evidence) -> str | None:
    """One line for lists: ``cell [12] · epoch 1 of 10, step 3 of 5``."""
    cell, fit = last_cell(seen), last_fit(seen)
    parts = []
    if cell is not None:
        parts.append(cell.name if cell.running else f"idle, after {cell.name}")
    if fit is not None:
        parts.append(fit.position or f"model.{fit.what}, before the first step")
    return " · ".join(parts) or None


def largest_arrays(seen: Evidence) -> list[tuple[str, int]]:
    """(name, bytes) of the largest top-level arrays at the end of the last finished cell, largest first."""
    for event in reversed(list(_events(seen))):
        arrays = event.get("arrays")
        if event.get("kind") == "cell_end" and isinstance(arrays, list):
            pairs = [
                (str(a.get("name"))[:80], size)
                for a in arrays
                if isinstance(a, dict) and (size := _int(a.get("bytes"))) is not None
            ]
            return sorted(pairs, key=lambda pair: -pair[1])
    return []


def metrics_by_epoch(seen: Evidence) -> list[tuple[int, dict[str, float]]]:
    """(epoch, logs) of the last fit that finished an epoch, in order."""
    found: dict[Any, list[tuple[int, dict[str, float]]]] = {}
    last: Any = None
    for event in _events(seen):
        epoch, logs = _int(event.get("epoch")), event.get("logs")
        if event.get("kind") == "epoch_end" and epoch is not None and isinstance(logs, dict):
            told = event.get("fit_id")
            last = told if isinstance(told, (int, str)) else None
            numbers = {str(k): float(v) for k, v in logs.items() if type(v) in (int, float)}
            found.setdefault(last, []).append((epoch, numbers))
    return found.get(last, [])


def last_checkpoint(seen: Evidence) -> tuple[str, float | None] | None:
    """(path, Unix seconds written) of the last file that a checkpoint callback wrote."""
    for event in reversed(list(_events(seen))):
        if event.get("kind") == "checkpoint" and (path := _text(event.get("path"))):
            return path, _float(event.get("written"))
    return None


def marks(seen: Evidence) -> list[Mark]:
    """Cells and fits for the memory curve, in the order they began."""
    reader = MarkReader(_MARK_LIMIT)
    for event in _events(seen):
        reader.take(event)
    return reader.marks


def _events(seen: Evidence) -> list[dict[str, Any]]:
    events = (seen.kernel or {}).get("events")
    return (
        [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []
    )


def _int(value: object) -> int | None:
    found = _float(value)
    return None if found is None else int(found)


def _float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < 1e300 else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
