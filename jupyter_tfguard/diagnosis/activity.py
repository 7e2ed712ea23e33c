"""What the kernel was doing when it died, read from its journal: cell, fit, step, arrays and logged metrics.

Repeated events, such as epochs and runs of a cell, are in moments.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from ..decode import decode, number_of
from ..record.events import LOOP, CellEnd, CellStart, EpochEnd, FitEnd, FitReady, FitStart
from ..record.fit_progress import RecordedProgress
from ..units import out_of
from .observed import Observed


@dataclass(kw_only=True, eq=False)
class Cell(CellStart):
    """The running cell, or the last one that ran: its start, and whether it is still running."""

    running: bool

    @property
    def name(self) -> str:
        """``cell [12]``."""
        return f"cell [{self.execution_count}]" if self.execution_count else "a cell"


@dataclass(kw_only=True, eq=False)
class Fit(FitStart):
    """The fit, evaluate, predict or training loop that is running: its start, with what is known newer about it.

    Attributes:
        epoch, step: Where it is, from 1; None if unknown, and before the first.
    """

    epoch: int | None
    step: int | None

    @property
    def method(self) -> str:
        """``fit``, ``evaluate``, ``predict``, or `LOOP`."""
        return self.what or "fit"

    @property
    def is_loop(self) -> bool:
        """True for a training loop that the user wrote."""
        return self.what == LOOP

    @property
    def name(self) -> str:
        """``fit``, or ``training loop``."""
        return "training loop" if self.is_loop else self.method

    @property
    def position(self) -> str | None:
        """``epoch 1 of 10, step 3 of 5``; None before the first step."""
        parts = []
        if self.epoch and self.method == "fit":
            parts.append(out_of("epoch", self.epoch, self.epochs))
        if self.step:
            parts.append(out_of("step", self.step, self.steps))
        return ", ".join(parts) or None


def last_cell(seen: Observed) -> Cell | None:
    """The running cell, or else the last one that ended; None when the journal names none."""
    start: CellStart | None = None
    running = False
    for event in seen.journal:
        if isinstance(event, CellStart):
            start, running = event, True
        elif isinstance(event, CellEnd):
            running = False
    if start is None:
        return None
    return Cell(**vars(start), running=running)


def last_fit(seen: Observed) -> Fit | None:
    """The running fit, evaluate, predict or training loop, or None. A finished one does not explain a crash."""
    running: dict[int | None, FitStart] = {}  # the newest last; a loop may call evaluate
    for event in seen.journal:
        if isinstance(event, FitStart):
            is_loop = event.what == LOOP
            running = {k: one for k, one in running.items() if one.what == LOOP and not is_loop}
            running[event.fit_id] = event
        elif isinstance(event, FitReady) and event.fit_id in running:
            running[event.fit_id] = _with(running[event.fit_id], event)
        elif isinstance(event, FitEnd):
            running.pop(event.fit_id, None)
    if not running:
        return None
    start = list(running.values())[-1]
    progress = decode(RecordedProgress, (seen.kernel or {}).get("progress"))
    if progress is not None and progress.fit_id != start.fit_id:
        progress = None
    if progress is None:
        return Fit(**vars(start), epoch=None, step=None)
    return Fit(**vars(_with(start, progress)), epoch=progress.epoch, step=progress.step)


def _with(start: FitStart, newer: FitReady | RecordedProgress) -> FitStart:
    """The start of a fit with what is known newer about it."""
    names = {one.name for one in fields(start)} - {"time", "monotonic"}
    known = {one.name: getattr(newer, one.name) for one in fields(newer) if one.name in names}
    return replace(start, **{name: value for name, value in known.items() if value is not None})


def where(seen: Observed) -> str | None:
    """One line for lists: ``cell [12] · epoch 1 of 10, step 3 of 5``."""
    cell, fit = last_cell(seen), last_fit(seen)
    parts = []
    if cell is not None:
        parts.append(cell.name if cell.running else f"idle, after {cell.name}")
    if fit is not None:
        if fit.is_loop:
            parts.append(", ".join(filter(None, (fit.name, fit.position))))
        else:
            parts.append(fit.position or f"model.{fit.method}, before the first step")
    return " · ".join(parts) or None


def largest_arrays(seen: Observed) -> list[tuple[str, int]]:
    """(name, bytes) of the largest top-level arrays at the end of the last finished cell, largest first."""
    for event in reversed(seen.journal):
        if isinstance(event, CellEnd) and event.arrays is not None:
            return sorted(((a.name, a.bytes) for a in event.arrays), key=lambda pair: -pair[1])
    return []


def metrics_by_epoch(seen: Observed) -> list[tuple[int, dict[str, float]]]:
    """(epoch, logs) of the last fit that finished an epoch, in order."""
    found: dict[int | None, list[tuple[int, dict[str, float]]]] = {}
    last: int | None = None
    for event in seen.journal:
        if isinstance(event, EpochEnd) and event.epoch is not None and event.logs is not None:
            last = event.fit_id
            numbers = {str(k): float(v) for k, v in event.logs.items() if _is_loss(v)}
            found.setdefault(last, []).append((event.epoch, numbers))
    return found.get(last, [])


def _is_loss(value: object) -> bool:
    """True for a number that a float can hold. NaN and infinity are kept: such a loss is worth reporting."""
    return type(value) is float or (type(value) is int and number_of(value) is not None)
