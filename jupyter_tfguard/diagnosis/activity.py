"""What the kernel was doing when it died, read from its journal: cell, fit, step, arrays and logged metrics.

Repeated events, such as epochs and runs of a cell, are in moments.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..batch_place import IN_ARGUMENT, BatchPlace
from ..decode import dict_of, number_of, text_of, whole_of
from ..kept_data import Kept
from ..record.facts import LOOP
from .observed import Observed


@dataclass(frozen=True)
class Cell:
    """The running cell, or the last one that ran. Unknown is None.

    Attributes:
        rss_bytes: Resident memory when the cell started. peak_bytes: The highest resident memory until then.
        cell_id: Its id in the notebook, as the front end sent it.
    """

    execution_count: int | None
    head: str | None
    started: float | None
    rss_bytes: int | None
    running: bool
    peak_bytes: int | None = None
    cell_id: str | None = None

    @property
    def name(self) -> str:
        """``cell [12]``."""
        return f"cell [{self.execution_count}]" if self.execution_count else "a cell"


@dataclass(frozen=True)
class Fit:
    """The fit, evaluate, predict or training loop that ran. Unknown is None; epoch and step count from 1.

    Attributes:
        kept_data: What its data pipelines keep in memory.
        batch_place: Where its batch size is set.
    """

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
    kept_data: tuple[Kept, ...] = ()
    batch_place: BatchPlace = IN_ARGUMENT

    @property
    def is_loop(self) -> bool:
        """True for a training loop that the user wrote."""
        return self.what == LOOP

    @property
    def name(self) -> str:
        """``fit``, or ``training loop``."""
        return "training loop" if self.is_loop else self.what

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


def last_cell(seen: Observed) -> Cell | None:
    """The running cell, or else the last one that ended; None when the journal names none."""
    start: dict[str, Any] | None = None
    running = False
    for event in seen.journal:
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
        started=number_of(start.get("t")),
        rss_bytes=whole_of(start.get("rss_bytes")),
        running=running,
        peak_bytes=whole_of(start.get("peak_bytes")),
        cell_id=text_of(start.get("cell_id")),
    )


def last_fit(seen: Observed) -> Fit | None:
    """The running fit, evaluate, predict or training loop, or None. A finished one does not explain a crash."""
    running: dict[object, dict[str, Any]] = {}  # the newest last; a loop may call evaluate
    for event in seen.journal:
        kind = event.get("kind")
        fit_id = whole_of(event.get("fit_id"))
        if kind == "fit_start":
            is_loop = event.get("what") == LOOP
            running = {
                k: one for k, one in running.items() if one.get("what") == LOOP and not is_loop
            }
            running[fit_id] = dict(event)
        elif kind == "fit_ready" and fit_id in running:
            known = {
                k: v
                for k, v in event.items()
                if v is not None and k not in ("n", "t", "m", "kind", "rss_bytes")
            }
            running[fit_id] |= known
        elif kind == "fit_end":
            running.pop(fit_id, None)
    if not running:
        return None
    start = list(running.values())[-1]
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
        started=number_of(start.get("t")),
        rss_bytes=whole_of(start.get("rss_bytes")),
        running=True,
        kept_data=tuple(_kept_data(start.get("kept_data"))),
        batch_place=BatchPlace.of(start.get("batch_place")),
    )


def _kept_data(recorded: object) -> Iterator[Kept]:
    for one in recorded if isinstance(recorded, list) else []:
        kept = dict_of(one)
        text, size = text_of(kept.get("text")), whole_of(kept.get("size_bytes"))
        if text is not None and size is not None:
            yield Kept(text[:300], size)


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
            parts.append(fit.position or f"model.{fit.what}, before the first step")
    return " · ".join(parts) or None


def largest_arrays(seen: Observed) -> list[tuple[str, int]]:
    """(name, bytes) of the largest top-level arrays at the end of the last finished cell, largest first."""
    for event in reversed(list(seen.journal)):
        arrays = event.get("arrays")
        if event.get("kind") == "cell_end" and isinstance(arrays, list):
            pairs = [
                (str(a.get("name"))[:80], size)
                for a in arrays
                if isinstance(a, dict) and (size := whole_of(a.get("bytes"))) is not None
            ]
            return sorted(pairs, key=lambda pair: -pair[1])
    return []


def metrics_by_epoch(seen: Observed) -> list[tuple[int, dict[str, float]]]:
    """(epoch, logs) of the last fit that finished an epoch, in order."""
    found: dict[Any, list[tuple[int, dict[str, float]]]] = {}
    last: Any = None
    for event in seen.journal:
        epoch, logs = whole_of(event.get("epoch")), event.get("logs")
        if event.get("kind") == "epoch_end" and epoch is not None and isinstance(logs, dict):
            given_id = event.get("fit_id")
            last = given_id if isinstance(given_id, (int, str)) else None
            numbers = {str(k): float(v) for k, v in logs.items() if _is_loss(v)}
            found.setdefault(last, []).append((epoch, numbers))
    return found.get(last, [])


def _is_loss(value: object) -> bool:
    """True for a number that a float can hold. NaN and infinity are kept: such a loss is worth reporting."""
    return type(value) is float or (type(value) is int and number_of(value) is not None)
