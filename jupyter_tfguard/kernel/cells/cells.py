"""Records the start, end and memory of each cell, and formats the table of ``%tfguard cells``."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...record.events import HEAD_LIMIT, Array, CellEnd, CellStart, Emit
from ...shield import shield, shielded
from ...units import human_bytes, human_seconds
from .arrays import largest_arrays
from .cell_memory import CellMemory, CellMeter, Measured, RunningCell
from .gpu_oom import Beginning, GpuOomNotice

_REDACTED_CHARACTERS = 600
REMEMBERED = 200
SHOWN = 10
_SHOWN_CHARACTERS = 40
_NOTE = "Peak: highest memory during the cell, minus memory at its start. Kept: memory at its end, minus memory at its start."


@dataclass
class _Open:
    """A running cell. `request`: id of its execute request. `source`: its text, which identifies its end event."""

    count: int | None
    head: str | None
    started: float
    memory: RunningCell
    beginning: Beginning
    request: str | None
    source: str | None


@dataclass(frozen=True, slots=True)
class EndedCell:
    """A cell that has ended. `head`: first characters of its source; None if source text is not recorded."""

    count: int | None
    head: str | None
    seconds: float
    memory: CellMemory


class CellRecorder:
    """Records cells from the events of one IPython shell.

    Args:
        shell: The IPython shell.
        emit: Writes an event to the journal.
        meter: Measures memory from the start of a cell to its end.
        gpu_oom: Reports GPU memory errors at the end of a failed cell.
        keep_text: Whether the head of the source is kept.
        on_start: Called when a cell begins.
        on_end: Called when the last running cell has ended, with its number and its error.

    Attributes:
        ended: The cells that have ended, oldest first, the newest 200.
    """

    def __init__(
        self,
        shell: Any,
        emit: Emit,
        meter: CellMeter,
        gpu_oom: GpuOomNotice,
        *,
        keep_text: bool,
        on_start: Callable[[], None],
        on_end: Callable[[int | None, BaseException | None], None],
    ) -> None:
        self._shell = shell
        self._emit = emit
        self._meter = meter
        self._gpu_oom = gpu_oom
        self.ended: deque[EndedCell] = deque(maxlen=REMEMBERED)
        self._keep_text = keep_text
        self._on_start = on_start
        self._on_end = on_end
        self._open: dict[int, _Open] = {}  # by thread: ipykernel's subshells run cells concurrently
        # Some IPython versions raise the counter before the event and others after the cell,
        # so the number of the next cell is kept here.
        self._next_count: int | None = getattr(shell, "execution_count", None)

    @property
    def is_running(self) -> bool:
        """True while a cell runs."""
        return bool(self._open)

    def start(self) -> None:
        """Register for IPython's cell events."""
        self._shell.events.register("pre_run_cell", self._before)
        self._shell.events.register("post_run_cell", self._after)

    def stop(self) -> None:
        """Unregister from IPython's cell events."""
        for event, function in (("pre_run_cell", self._before), ("post_run_cell", self._after)):
            if function in self._shell.events.callbacks.get(event, ()):
                self._shell.events.unregister(event, function)

    @shield("start of a cell")
    def _before(self, info: Any = None) -> None:
        thread = threading.get_ident()
        request = self._request()
        running = self._open.get(thread)
        if running is not None and running.request == request:
            return  # this cell was started by the running cell
        if self._open:
            self._drop_abandoned(thread)
        source = getattr(info, "raw_cell", None)
        # Without history (nbval) the counter does not move, so its number is that of another cell.
        count = self._next_count if getattr(info, "store_history", True) else None
        head = _head(source or "") if self._keep_text else None
        memory = self._meter.begin()
        beginning = self._gpu_oom.begin()
        self._open[thread] = _Open(
            count, head, time.monotonic(), memory, beginning, request, source
        )
        try:
            self._emit(
                CellStart(
                    execution_count=count,
                    cell_id=self._cell_id(info),
                    head=head,
                    rss_bytes=memory.rss_bytes,
                    kept_bytes=memory.kept_bytes,
                    peak_bytes=memory.peak_bytes,
                )
            )
        finally:
            self._on_start()

    @shield("end of a cell")
    def _after(self, result: Any = None) -> None:
        self._next_count = getattr(self._shell, "execution_count", None)
        running = self._open.get(threading.get_ident())
        # Skip an empty cell, which has an end event but no start event, and a cell that the running cell started.
        source = getattr(getattr(result, "info", None), "raw_cell", None)
        if running is None or running.source != source:
            return
        del self._open[threading.get_ident()]
        error = getattr(result, "error_before_exec", None) or getattr(result, "error_in_exec", None)
        seconds = round(time.monotonic() - running.started, 6)
        memory = CellMemory(Measured(), Measured())
        arrays = None
        try:
            memory = self._meter.end(running.memory)
            self.ended.append(EndedCell(running.count, running.head, seconds, memory))
            arrays = tuple(Array(**one) for one in largest_arrays(self._shell.user_ns))
            if error is not None:
                with shielded("GPU OOM"):
                    self._gpu_oom.report(error, running.beginning, running.count)
        except KeyboardInterrupt:
            pass  # Stop was pressed after the user's code had ended; it interrupts only our code
        finally:
            try:
                self._emit(
                    CellEnd(
                        execution_count=running.count,
                        seconds=seconds,
                        ok=error is None,
                        error=None if error is None else type(error).__name__,
                        arrays=arrays,
                        rss_start_bytes=memory.host.start_bytes,
                        peak_bytes=memory.host.highest_bytes,
                        rss_bytes=memory.host.end_bytes,
                        gpu_start_bytes=memory.gpu.start_bytes,
                        gpu_peak_bytes=memory.gpu.highest_bytes,
                        gpu_bytes=memory.gpu.end_bytes,
                    )
                )
            finally:
                if not self._open:
                    self._on_end(running.count, error)

    def _drop_abandoned(self, thread: int) -> None:
        """Drop cells without an end event: the one of an earlier request in this thread, and those of ended threads."""
        live = {one.ident for one in threading.enumerate()} - {thread}
        for abandoned in [one for one in self._open if one not in live]:
            self._meter.end(self._open.pop(abandoned).memory)

    def _request(self) -> str | None:
        found: str | None = (self._parent().get("header") or {}).get("msg_id")
        return found

    def _parent(self) -> dict[str, Any]:
        """The execute request; {} if the kernel does not give it."""
        kernel = self._shell.kernel
        with contextlib.suppress(AttributeError, TypeError):
            return kernel.get_parent("shell") or {}
        with contextlib.suppress(AttributeError, TypeError):
            return kernel.get_parent() or {}  # xeus-python
        return {}

    def _cell_id(self, info: Any) -> str | None:
        found = getattr(info, "cell_id", None)
        if found is None:
            found = (self._parent().get("metadata") or {}).get("cellId")
        return None if found is None else str(found)[:100]


def _head(source: str) -> str:
    """The first characters of a cell. Secrets are redacted before the text is cut."""
    from ...redact import redact  # building patterns takes milliseconds, so not at kernel start

    text = redact(source.lstrip()[:_REDACTED_CHARACTERS]).rstrip()
    return text if len(text) <= HEAD_LIMIT else text[: HEAD_LIMIT - 1] + "…"


def cells_text(ended: Sequence[EndedCell]) -> str:
    """A table of the ten ended cells with the largest rise, largest first; a sentence if no cell has ended."""
    if not ended:
        return "No cell has finished since tfguard was loaded into this kernel."
    shown = sorted(ended, key=lambda cell: -cell.memory.rise_bytes)[:SHOWN]
    heads = any(cell.head is not None for cell in shown)
    gpu = any(cell.memory.gpu.end_bytes is not None for cell in shown)
    titles = ["cell", *(["source"] if heads else []), "time", "host peak", "host kept"]
    titles += ["GPU peak", "GPU kept"] if gpu else []
    lines = _aligned([titles, *(_row(cell, heads=heads, gpu=gpu) for cell in shown)], heads=heads)
    lines.append(_NOTE)
    if len(shown) < len(ended):
        lines.append(f"Shows the {len(shown)} of {len(ended)} cells with the largest increase.")
    return "\n".join(lines)


def _row(cell: EndedCell, *, heads: bool, gpu: bool) -> list[str]:
    memory = cell.memory
    number = "[ ]" if cell.count is None else f"[{cell.count}]"
    row = [number, *([_shown_head(cell.head)] if heads else []), human_seconds(cell.seconds)]
    row += [_signed(memory.host.peak_bytes), _signed(memory.host.kept_bytes)]
    return row + ([_signed(memory.gpu.peak_bytes), _signed(memory.gpu.kept_bytes)] if gpu else [])


def _shown_head(head: str | None) -> str:
    from ...redact import one_line

    text = one_line(head or "")
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def _signed(number: int | None) -> str:
    text = human_bytes(number)
    return f"+{text}" if number is not None and number > 0 else text


def _aligned(rows: list[list[str]], *, heads: bool) -> list[str]:
    """Align the columns: cell and source left, numbers right."""
    left = 2 if heads else 1
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.ljust(width) if place < left else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
