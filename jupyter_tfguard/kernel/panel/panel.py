"""Sends state changes to the panel (``%tfguard panel``) from a thread, so the panel updates while a cell runs.

Nothing is sent while no cell runs: every message counts as kernel activity, and an open panel must not prevent the
culling of an idle kernel.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from typing import Any

from ...metrics import Sample
from ...shield import note_problem
from ...threads import background_thread
from .panel_state import Guarded, PanelState

_INTERVAL_SECONDS = 0.25
# An idle kernel samples once a second; this is long enough to show the first sample after a cell.
_AFTER_CELL_SECONDS = 1.5
_STOP_SECONDS = 1.0


class Panel:
    """The panel of a kernel: its state, its widget, and the thread that updates it.

    Args:
        session: The guard of the kernel.
        make: Creates the widget for this panel; any number of outputs can show it.
    """

    def __init__(self, session: Guarded, make: Callable[[Panel], Any]) -> None:
        self.state = PanelState(session)
        self.widget = make(self)
        self._send_until = float("inf")  # the cell that opened the panel is running
        self._wake = threading.Event()
        self._ended = threading.Event()
        # ipykernel 7.0.0 and 7.0.1 drop messages that a thread sends without the context of a cell.
        run = contextvars.copy_context().run
        self._thread = background_thread(lambda: run(self._run), "tfguard-widget")
        self._thread.start()

    def set_busy(self, busy: bool) -> None:
        """Set whether a cell is running."""
        self._send_until = float("inf") if busy else time.monotonic() + _AFTER_CELL_SECONDS
        self._wake.set()

    def sampled(self, sample: Sample) -> None:
        """Take a sample of the kernel."""
        self.state.sampled(sample)

    def opened(self) -> None:
        """Send history and state to a view that was opened or has become visible again."""
        self.widget.send({"type": "history", "rows": self.state.history()})
        self.widget.send({"type": "state", "state": self.state.now()})

    def stop(self) -> None:
        """Send a final message, and stop sending."""
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
