"""Stopped and refused cells: their messages, and the newest one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from ..shield import shielded
from .snapshot import Snapshot
from .words import SWITCH_OFF, CellFacts, refusal_lines, stop_lines


class Stop(NamedTuple):
    """One stopped cell.

    Attributes:
        time: Unix seconds.
        seconds: From the threshold to the exception; 0 for a refusal.
        available_bytes: Available memory at that time.
        total_bytes: The limit.
        lines: The text of the exception.
    """

    time: float
    seconds: float
    available_bytes: int
    total_bytes: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)


class Cell(NamedTuple):
    """A watched cell. `total_bytes`: the limit."""

    total_bytes: int


class Stops:
    """Creates and stores the stops of one kernel.

    Args:
        facts: Returns the known facts about the running cell.

    Attributes:
        last: The newest stop; None if there was none.
        of_cell: The stop of the newest cell; None if it was not stopped.
    """

    def __init__(self, facts: Callable[[], CellFacts]) -> None:
        self._facts = facts
        self.last: Stop | None = None
        self.of_cell: Stop | None = None

    def cell_begins(self) -> None:
        """Reset `of_cell` at the start of a cell."""
        self.of_cell = None

    def reached(self, seen: Snapshot, cell: Cell) -> Stop:
        """Record a stop because too little memory is available."""
        left, wanted = seen.trip_available_bytes, seen.last_refused_bytes
        lines = stop_lines(
            self._known_facts(),
            cell.total_bytes,
            left,
            seen.trip_added_bytes,
            wanted_bytes=wanted if wanted > max(0, left) else None,
            is_first=self.last is None,
        )
        return self._keep(round(seen.trip_seconds_ago, 4), left, cell.total_bytes, lines)

    def refused(self, seen: Snapshot, cell: Cell) -> Stop:
        """Record that a cell ended because an allocation was refused."""
        left, wanted = seen.last_refused_available_bytes, seen.last_refused_bytes
        lines = refusal_lines(
            self._known_facts(), cell.total_bytes, left, wanted, is_first=self.last is None
        )
        return self._keep(0.0, left, cell.total_bytes, lines)

    def hopeless(self, text: str, available_bytes: int, total_bytes: int) -> Stop:
        """Record a run that was refused because it cannot fit. `text` says why."""
        return self._keep(0.0, available_bytes, total_bytes, tuple(text.splitlines()))

    def add_line(self, raised: BaseException, text: str) -> None:
        """Add a line to the newest stop and its exception; the line about switching the stop off stays last."""
        if self.last is None:
            return
        lines = (*self.last.lines, text)
        if SWITCH_OFF in lines:
            lines = (*(line for line in lines if line != SWITCH_OFF), SWITCH_OFF)
        self.last = self.of_cell = self.last._replace(lines=lines)
        raised.args = (self.last.text,)

    def _known_facts(self) -> CellFacts:
        with shielded("describing a stopped cell"):
            return self._facts()
        return CellFacts()

    def _keep(self, seconds: float, left: int, total: int, lines: tuple[str, ...]) -> Stop:
        self.last = self.of_cell = Stop(time.time(), seconds, left, total, lines)
        return self.last
