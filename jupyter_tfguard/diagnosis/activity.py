"""What the kernel was doing when it died, from its journal: the cell, the fit, the step."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..record.marks import Mark, MarkReader
from .typed import text_of, whole_of

if TYPE_CHECKING:
    from .evidence import Evidence

_MARK_LIMIT = 100


@dataclass(frozen=True)
class Cell:
    """The cell that ran, or the last one that did. Unknown is None.

    Attributes:
        rss_bytes: Resident memory at its start. peak_bytes: The highest of it until then.
    """

    execution_count: int | None
    head: str | None
    started: float | None
    rss_bytes: int | None
    running: bool
    peak_bytes: int | None = None

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
    return _last_cell_of(_events(seen))


def quitting_cell(seen: Evidence) -> Cell | None:
    """The cell that ran when quit() was called, which ends it in good order before the kernel goes; None for none."""
    events = _events(seen)
    asked = (
        i
        for i, event in enumerate(events)
        if event.get("kind") == "exit_requested" and event.get("how") == "quit"
    )
    cell = next((_last_cell_of(events[:i]) for i in asked), None)
    return cell if cell is not None and cell.running else None


def _last_cell_of(events: list[dict[str, Any]]) -> Cell | None:
    start: dict[str, Any] | None = None
    running = False
    for event in events:
        if event.get("kind") == "cell_start":
            start, running = event, True
        elif event.get("kind") == "cell_end":
            running = False
    if start is None:
        return None
    head = start.get("head")
    return Cell(
        execution_count=whole_of(start.get("execution_count")),
        head=head if isinstance(head, str) and head.strip() else None,
        started=_float(start.get("t")),
        rss_bytes=whole_of(start.get("rss_bytes")),
        running=running,
        peak_bytes=whole_of(start.get("peak_bytes")),
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
        model_name=text_of(both.get("model_name")),
        parameter_count=whole_of(both.get("parameter_count")),
        optimizer=text_of(both.get("optimizer")),
        batch_size=whole_of(both.get("batch_size")),
        batch_shape=tuple(int(n) for n in shape if whole_of(n) is not None)
        if isinstance(shape, list)
        else None,
        batch_dtype=text_of(both.get("batch_dtype")),
        epochs=whole_of(both.get("epochs")),
        epoch=whole_of(progress.get("epoch")),
        steps=whole_of(both.get("steps")),
        step=whole_of(progress.get("step")),
        started=_float(start.get("t")),
        rss_bytes=whole_of(start.get("rss_bytes")),
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
                if isinstance(a, dict) and (size := whole_of(a.get("bytes"))) is not None
            ]
            return sorted(pairs, key=lambda pair: -pair[1])
    return []


def metrics_by_epoch(seen: Evidence) -> list[tuple[int, dict[str, float]]]:
    """(epoch, logs) of the last fit that finished an epoch, in order."""
    found: dict[Any, list[tuple[int, dict[str, float]]]] = {}
    last: Any = None
    for event in _events(seen):
        epoch, logs = whole_of(event.get("epoch")), event.get("logs")
        if event.get("kind") == "epoch_end" and epoch is not None and isinstance(logs, dict):
            told = event.get("fit_id")
            last = told if isinstance(told, (int, str)) else None
            numbers = {str(k): float(v) for k, v in logs.items() if _is_loss(v)}
            found.setdefault(last, []).append((epoch, numbers))
    return found.get(last, [])


@dataclass(frozen=True)
class Moment:
    """A moment that comes again and again: the end of an epoch, the beginning of a fit or of a cell's run.

    Attributes:
        number: Of the epoch or fit; of a cell's runs, counted here.
        time: Unix seconds.
        seconds: How long the epoch took; None for other moments.
        rss_bytes: Resident memory then; None when not noted.
        name: Of the model or the cell.
    """

    number: int
    time: float
    seconds: float | None = None
    rss_bytes: int | None = None
    name: str | None = None


def epoch_ends(seen: Evidence) -> list[Moment]:
    """The epochs that the newest fit finished."""
    found: list[Moment] = []
    newest: object = None
    for event in _events(seen):
        number, when = whole_of(event.get("epoch")), _float(event.get("t"))
        if event.get("kind") != "epoch_end" or number is None or when is None:
            continue
        if event.get("fit_id") != newest:
            newest, found = event.get("fit_id"), []
        if not found or number > found[-1].number:
            found.append(Moment(number, when, _float(event.get("seconds"))))
    return found


def fit_starts(seen: Evidence) -> list[Moment]:
    """The fits that the running cell began, or else the last one; of quick ones in a long row some are left out."""
    found: list[Moment] = []
    for event in _events(seen):
        if event.get("kind") == "cell_start":
            found = []
        number, when = whole_of(event.get("fit_id")), _float(event.get("t"))
        if event.get("kind") != "fit_start" or event.get("what") != "fit":
            continue
        if number is not None and when is not None and (not found or number > found[-1].number):
            name, size = text_of(event.get("model_name")), whole_of(event.get("rss_bytes"))
            found.append(Moment(number, when, rss_bytes=size, name=name))
    return found


def cell_runs(seen: Evidence) -> list[Moment]:
    """The runs of the cell that ran last, each at its beginning."""
    starts = [event for event in _events(seen) if event.get("kind") == "cell_start"]
    cell_id = text_of(starts[-1].get("cell_id")) if starts else None
    same = [event for event in starts if cell_id and event.get("cell_id") == cell_id]
    found = []
    for number, event in enumerate(same, 1):
        count, when = whole_of(event.get("execution_count")), _float(event.get("t"))
        if when is not None:
            name = f"cell [{count}]" if count else "the cell"
            size = whole_of(event.get("rss_bytes"))
            found.append(Moment(number, when, rss_bytes=size, name=name))
    return found


def grown_arrays(seen: Evidence) -> list[tuple[str, int, int]]:
    """(name, bytes first, bytes last) of top-level arrays that were larger at each end of a cell than before."""
    sizes: dict[str, list[int]] = {}
    for event in _events(seen):
        arrays = event.get("arrays") if event.get("kind") == "cell_end" else None
        for array in arrays if isinstance(arrays, list) else ():
            name, size = (
                (array.get("name"), whole_of(array.get("bytes")))
                if isinstance(array, dict)
                else (None, None)
            )
            if isinstance(name, str) and size is not None:
                sizes.setdefault(name[:80], []).append(size)
    rising = {
        n: s
        for n, s in sizes.items()
        if len(s) > 2 and all(a < b for a, b in itertools.pairwise(s))
    }
    return sorted(((n, s[0], s[-1]) for n, s in rising.items()), key=lambda g: g[1] - g[2])


def last_checkpoint(seen: Evidence) -> tuple[str, float | None] | None:
    """(path, Unix seconds written) of the last file that a checkpoint callback wrote."""
    for event in reversed(list(_events(seen))):
        if event.get("kind") == "checkpoint" and (path := text_of(event.get("path"))):
            return path, _float(event.get("written"))
    return None


def marks(seen: Evidence) -> list[Mark]:
    """Cells and fits for the memory curve, in the order they began."""
    reader = MarkReader(_MARK_LIMIT)
    for event in _events(seen):
        reader.take(event)
    return reader.marks


def _is_loss(value: object) -> bool:
    """True for a number that a float can hold; a loss that is not a number is news."""
    return type(value) is float or (type(value) is int and _float(value) is not None)


def _events(seen: Evidence) -> list[dict[str, Any]]:
    found = (seen.kernel or {}).get("events")
    events = [e for e in found if isinstance(e, dict)] if isinstance(found, list) else []
    if seen.hang is not None and seen.asked_to_end:
        # A restart begins with an interrupt, which ends the cell: what counts is how it stood still.
        events = [e for e in events if (_float(e.get("t")) or 0) <= seen.hang.noticed]
    return events


def _float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < 1e300 else None
