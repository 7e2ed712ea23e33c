"""The newest stop of each kernel, from the recordings: a stop is no crash, but `why` and `list` show it as well."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import TfGuardError
from ..record.contents import read_recording
from ..redact import one_line, printable
from .text import local_time
from .wire import utc_text

_EVENT = "memory_stop"
_LINES_LIMIT = 8
_LINE_LIMIT = 2000
_TITLES = {
    "not_started": "a run was not started: it needs more memory than is available",
    "beside": "what an earlier cell had left running was stopped, because memory was nearly full",
    "refused": "a request for memory was refused",
}
_STOPPED = "stopped, because memory was nearly full"


@dataclass(frozen=True)
class StoppedCell:
    """A stop or a refusal. The kernel went on.

    Attributes:
        time: Unix seconds.
        what: ``stopped``, ``refused``, ``not_started``, or ``beside`` for something that an earlier cell had left running.
        lines: The message that the user saw.
        execution_count: The number of the cell; None if unknown.
        notebook_path: None if unknown.
    """

    time: float
    what: str
    lines: tuple[str, ...]
    execution_count: int | None = None
    notebook_path: str | None = None

    @classmethod
    def of(cls, event: dict[str, Any] | None, notebook_path: object = None) -> StoppedCell | None:
        """From an unchecked event of a journal; None for any other event."""
        if event is None:
            return None
        lines, when, count = event.get("lines"), event.get("t"), event.get("execution_count")
        if event.get("kind") != _EVENT or not isinstance(lines, list):
            return None
        if isinstance(when, bool) or not isinstance(when, (int, float)):
            return None
        return cls(
            float(when),
            str(event.get("what")),
            tuple(str(line)[:_LINE_LIMIT] for line in lines[:_LINES_LIMIT]),
            count if type(count) is int else None,
            notebook_path if isinstance(notebook_path, str) else None,
        )

    @property
    def headline(self) -> str:
        """``2026-11-27 09:12:44, cell [3] of train.ipynb: stopped, because memory was nearly full``."""
        cell = "a cell" if self.execution_count is None else f"cell [{self.execution_count}]"
        place = cell if self.notebook_path is None else f"{cell} of {self.notebook_path}"
        title = _TITLES.get(self.what, _STOPPED)
        return one_line(f"{local_time(utc_text(self.time))}, {place}: {title}")

    def text(self) -> str:
        """Headline and message, safe to print on a terminal."""
        rows = [row for line in self.lines for row in line.splitlines()]
        shown = (f"  {printable(row)}" for row in rows)
        return "\n".join([f"{self.headline}. The kernel went on.", *shown])


def stopped_cells(recordings: Path) -> list[StoppedCell]:
    """The newest stop of each kernel that has a recording, newest first. What cannot be read is left out."""
    found = []
    for folder in sorted(recordings.iterdir()) if recordings.is_dir() else ():
        try:
            content = read_recording(folder)
        except TfGuardError:
            continue
        path = content.header.get("notebook_path")
        stops = [one for event in content.events if (one := StoppedCell.of(event, path))]
        found += stops[-1:]
    return sorted(found, key=lambda one: -one.time)
