"""Marks on the time axis of a memory curve, live and in a report.

A mark shows where a cell or fit started, where memory ran out or was growing, or where the guard stopped a cell.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from .events import CellStart, CheckpointWritten, EpochEnd, Event, FitStart, Notice

_SAME_MOMENT_SECONDS = 1.0
_TEXT_LIMIT = 40
_NEAR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Mark:
    """A labelled moment of the curve. `time`: Unix seconds. `kind`: cell, fit, epoch, checkpoint, or that of a notice."""

    time: float
    kind: str
    label: str


class MarkReader:
    """Converts the events of a journal to marks.

    Args:
        limit: Number of marks to keep, the newest; None for all.
        with_epochs: Whether epochs and checkpoints have marks.
    """

    def __init__(self, limit: int | None = None, *, with_epochs: bool = False) -> None:
        self._marks: deque[Mark] = deque(maxlen=limit)
        self._with_epochs = with_epochs
        self._cell: Mark | None = None
        self._cell_moment = -math.inf

    @property
    def marks(self) -> list[Mark]:
        """The marks in the order of their events."""
        return list(self._marks)

    def take(self, event: Event) -> None:
        """Process the next event."""
        when = event.time
        if when is None:
            return
        if isinstance(event, CellStart):
            count = event.execution_count
            self._cell = Mark(when, "cell", f"[{count}]" if count else "cell")
            self._cell_moment = _moment(event)
            self._marks.append(self._cell)
        elif isinstance(event, FitStart):
            # A cell that starts a fit at once gets one mark instead of two overlapping ones.
            alone = bool(self._marks) and self._marks[-1] is self._cell
            if alone and _moment(event) - self._cell_moment < _SAME_MOMENT_SECONDS:
                self._marks.pop()
            numbered = self._cell is not None and self._cell.label != "cell"
            what = (event.what or "fit")[:_TEXT_LIMIT]
            label = f"{self._cell.label} {what}" if self._cell and numbered else what
            self._marks.append(Mark(when, "fit", label))
        elif isinstance(event, Notice):
            self._marks.append(Mark(when, event.mark_kind, event.mark))
        elif self._with_epochs and isinstance(event, EpochEnd) and event.epoch:
            self._marks.append(Mark(when, "epoch", f"epoch {event.epoch}"))
        elif self._with_epochs and isinstance(event, CheckpointWritten):
            written = event.written
            if written is not None and abs(written - when) < _NEAR_SECONDS:
                when = written
            self._marks.append(Mark(when, "checkpoint", "checkpoint"))


def _moment(event: Event) -> float:
    """For durations: the wall clock may jump, but a bundle may be without the other one."""
    return (event.time or 0.0) if event.monotonic is None else event.monotonic
