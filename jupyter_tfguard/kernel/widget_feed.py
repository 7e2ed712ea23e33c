"""Sends what changes in a kernel to all its panels, from one thread, so that they move while a cell runs.

Sends while at least one panel is looked at. While no cell runs, only what is worth a look is sent: every message counts as
activity of the kernel, and an open panel must not keep it from being culled.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from ..shield import note_problem
from ..threads import background_thread

HERTZ_DEFAULT = 4.0
HERTZ_LOWEST, HERTZ_HIGHEST = 0.5, 10.0
_IDLE_SECONDS = 1.0
_CALLBACK_SECONDS = 0.5
_STOP_SECONDS = 1.0
# An idle kernel's memory changes by some KiB of its own machinery.
_NOTABLE_BYTES = 1024 * 1024


class Panel(Protocol):
    """One widget."""

    @property
    def is_closed(self) -> bool:
        """True once nothing can be sent any more."""
        ...

    @property
    def is_seen(self) -> bool:
        """False once all its views are gone; they may come back."""
        ...

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message to its views."""
        ...


class WidgetFeed:
    """Owns the thread, which begins with the first panel.

    Args:
        state: Reads the newest state of the kernel.
        threaded: False where messages from threads do not arrive (Colab): then :meth:`progressed` sends.
    """

    def __init__(self, state: Callable[[], dict[str, Any]], *, threaded: bool) -> None:
        self._state = state
        self._threaded = threaded
        self._panels: list[Panel] = []
        self._hertz = HERTZ_DEFAULT
        self._busy = True  # the cell that opened the first panel
        self._sent: dict[str, Any] | None = None
        self._sent_at = 0.0
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, panel: Panel) -> None:
        """Feed this one too."""
        self._panels = [*(p for p in self._panels if not p.is_closed), panel]
        if self._threaded and self._thread is None:
            # ipykernel 7.0.0 and 7.0.1 drop what a thread sends without the context of a cell.
            run = contextvars.copy_context().run
            self._thread = background_thread(lambda: run(self._run), "tfguard-widget")
            self._thread.start()

    def set_rate(self, hertz: float) -> None:
        """Send so often from here on while a cell runs, 0.5 to 10 messages a second, for all panels of the kernel."""
        self._hertz = min(max(hertz, HERTZ_LOWEST), HERTZ_HIGHEST)

    def set_busy(self, busy: bool) -> None:
        """Tell that a cell has begun, or that the last one has ended."""
        self._busy = busy
        if self._threaded:
            self._wake.set()
        elif not busy:
            self._send_news()

    def wake(self) -> None:
        """A panel is looked at again."""
        self._sent = None
        self._wake.set()

    def progressed(self) -> None:
        """From a step of a fit, in the main thread: send if messages from threads do not arrive."""
        if (
            not self._threaded
            and threading.current_thread() is threading.main_thread()
            and time.monotonic() - self._sent_at >= _CALLBACK_SECONDS
        ):
            self._send_news()

    def stop(self) -> None:
        """Send a last word, and nothing more."""
        self._ended.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)
        self._tell({"type": "ended"})
        self._panels = []

    def leave_child(self) -> None:
        """In a forked child: the panels are the parent's."""
        self._panels = []

    def _run(self) -> None:
        while not self._ended.is_set():
            self._wake.wait(self._pause())
            self._wake.clear()
            # Cells that begin and end at once wake us each time.
            if self._ended.wait(self._until_due()) or not self._send_news():
                return

    @property
    def _rests(self) -> bool:
        return not any(panel.is_seen for panel in self._panels)

    def _pause(self) -> float | None:
        """Seconds until the next look; None = until somebody wakes us."""
        if self._rests:
            return None
        return self._until_due() if self._busy else max(_IDLE_SECONDS, self._until_due())

    def _until_due(self) -> float:
        return max(0.0, self._sent_at + 1.0 / self._hertz - time.monotonic())

    def _send_news(self) -> bool:
        """False when it failed, and no more is to be tried."""
        if self._rests:
            return True
        try:
            now = self._state()
            if worth_sending(self._sent, now):
                self._sent = now
                self._tell({"type": "state", "state": now})
            self._sent_at = time.monotonic()
        except Exception as error:
            note_problem("the panel in the notebook", error)
            return False
        return True

    def _tell(self, message: dict[str, Any]) -> None:
        for panel in self._panels:
            if panel.is_seen:
                panel.tell(message)


def worth_sending(before: dict[str, Any] | None, now: dict[str, Any]) -> bool:
    """True when a look at `now` tells more than one at `before` did.

    While a cell runs each sample does. Else memory must have changed by a MiB, or something else than a number of memory.
    """
    if before is None or before["busy"] != now["busy"]:
        return True
    if now["busy"]:
        return bool(now["host"]["time"] != before["host"]["time"]) or _rest(before) != _rest(now)
    rss, rss_before = now["host"]["rss_bytes"], before["host"]["rss_bytes"]
    if rss is None or rss_before is None:
        return rss is not rss_before or _rest(before) != _rest(now)
    return abs(rss - rss_before) >= _NOTABLE_BYTES or _rest(before) != _rest(now)


def _rest(state: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key not in ("time", "host")}
