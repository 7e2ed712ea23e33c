"""The newest stop of each kernel, from the recordings: a stop is no crash, but `why` and `list` show it as well."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..decode import text_of
from ..errors import TfGuardError
from ..record.contents import read_recording
from ..record.events import Event, MemoryStopped
from ..redact import one_line, printable
from ..units import local_time

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
    def of(cls, event: Event | None, notebook_path: object = None) -> StoppedCell | None:
        """From an event of a journal; None for any other event."""
        if not isinstance(event, MemoryStopped) or event.time is None:
            return None
        path = text_of(notebook_path)
        return cls(event.time, event.what or "", event.lines, event.execution_count, path)

    @property
    def headline(self) -> str:
        """``2026-11-27 09:12:44, cell [3] of train.ipynb: stopped, because memory was nearly full``."""
        cell = "a cell" if self.execution_count is None else f"cell [{self.execution_count}]"
        place = cell if self.notebook_path is None else f"{cell} of {self.notebook_path}"
        title = _TITLES.get(self.what, _STOPPED)
        return one_line(f"{local_time(self.time)}, {place}: {title}")

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
        stops = [one for event in content.journal if (one := StoppedCell.of(event, path))]
        found += stops[-1:]
    return sorted(found, key=lambda one: -one.time)
