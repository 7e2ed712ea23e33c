"""Sends what changes in a kernel to its panel (``%tfguard panel``), from a thread, so that it moves while a cell runs.

While no cell runs, nothing is sent: every message counts as activity of the kernel, and an open panel must not keep it
from being culled.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from typing import Any

from ..metrics import Sample
from ..shield import note_problem
from ..threads import background_thread
from .panel_state import Guarded, PanelState

_INTERVAL_SECONDS = 0.25
# An idle kernel samples once a second: the first sample after a cell is still shown.
_AFTER_CELL_SECONDS = 1.5
_STOP_SECONDS = 1.0


class Panel:
    """The panel of a kernel: what it shows, and the thread that feeds it.

    Args:
        session: The guard of the kernel.
        make: Makes the widget, which any number of views in outputs show, given the panel.
    """

    def __init__(self, session: Guarded, make: Callable[[Panel], Any]) -> None:
        self.state = PanelState(session)
        self.widget = make(self)
        self._send_until = float("inf")  # the cell that opened the panel runs
        self._wake = threading.Event()
        self._ended = threading.Event()
        # ipykernel 7.0.0 and 7.0.1 drop what a thread sends without the context of a cell.
        run = contextvars.copy_context().run
        self._thread = background_thread(lambda: run(self._run), "tfguard-widget")
        self._thread.start()

    def set_busy(self, busy: bool) -> None:
        """A cell has begun, or the last one has ended."""
        self._send_until = float("inf") if busy else time.monotonic() + _AFTER_CELL_SECONDS
        self._wake.set()

    def sampled(self, sample: Sample) -> None:
        """The kernel has sampled itself."""
        self.state.sampled(sample)

    def opened(self) -> None:
        """A view was opened, or is seen again: it needs what it has missed."""
        self.widget.send({"type": "history", "rows": self.state.history()})
        self.widget.send({"type": "state", "state": self.state.now()})

    def stop(self) -> None:
        """Say that nothing more comes, and send nothing more."""
        self._ended.set()
        self._wake.set()
        self._thread.join(_STOP_SECONDS)
        self.widget.send({"type": "ended"})
        self.state.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self.widget.send({"type": "state", "state": self.state.now()})
            except Exception as error:
                note_problem("the panel in the notebook", error)
                return
            self._wake.clear()
            if not self._ended.wait(_INTERVAL_SECONDS) and time.monotonic() > self._send_until:
                self._wake.wait()
