"""Marks on the time axis of a memory curve, live and in a report.

A mark shows where a cell or fit started, where memory ran out or was growing, or where the guard stopped a cell.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

from ..decode import number_of

_SAME_MOMENT_SECONDS = 1.0
_TEXT_LIMIT = 40
# Events that the kernel survives, by their kind in the journal: the kind in a report, the label in a curve.
OUT_OF_MEMORY = {
    "gpu_oom": ("gpu_oom", "GPU OOM"),
    "memory_stop": ("memory_stop", "stopped"),
    "memory_growth": ("leak", "grows"),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A labelled moment of the curve. `time`: Unix seconds."""

    time: float
    label: str


class MarkReader:
    """Converts the events of a journal to marks. Events may be forged: values of the wrong type are ignored.

    Args:
        limit: Number of marks to keep, the newest.
    """

    def __init__(self, limit: int) -> None:
        self._marks: deque[Mark] = deque(maxlen=limit)
        self._cell: Mark | None = None
        self._cell_moment = -math.inf

    @property
    def marks(self) -> list[Mark]:
        """The marks in the order of their events."""
        return list(self._marks)

    def take(self, event: dict[str, Any]) -> None:
        """Process the next event."""
        kind, when, moment = event.get("kind"), number_of(event.get("t")), number_of(event.get("m"))
        if when is None or moment is None:
            return
        if kind == "cell_start":
            count = number_of(event.get("execution_count"))
            self._cell = Mark(when, f"[{count:.0f}]" if count else "cell")
            self._cell_moment = moment
            self._marks.append(self._cell)
        elif kind == "fit_start":
            what = event.get("what")
            what = what[:_TEXT_LIMIT] if isinstance(what, str) and what else "fit"
            # A cell that starts a fit at once gets one mark instead of two overlapping ones.
            alone = bool(self._marks) and self._marks[-1] is self._cell
            if alone and moment - self._cell_moment < _SAME_MOMENT_SECONDS:
                self._marks.pop()
            numbered = self._cell is not None and self._cell.label != "cell"
            label = f"{self._cell.label} {what}" if self._cell and numbered else what
            self._marks.append(Mark(when, label))
        elif isinstance(kind, str) and kind in OUT_OF_MEMORY:
            self._marks.append(Mark(when, OUT_OF_MEMORY[kind][1]))
