"""What a kernel manager says of its kernel's doings, kept ready: it is asked of a thousand kernels many times a second."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

_NAMES = ("execution_state", "last_activity")
_START_SECONDS = 60.0
# Between two cells a kernel is idle for a moment; the run goes on.
_PAUSE_SECONDS = 3.0


class Activity:
    """Execution state and last activity of one kernel.

    Jupyter Server's own managers tell of a change (they are traits); any other manager is asked each time.

    Args:
        manager: Of the kernel.
        in_cell: True while the kernel itself says that a cell runs: its manager believes the "idle" of a subshell.
    """

    def __init__(self, manager: Any, in_cell: Callable[[], bool] = lambda: False) -> None:
        self._manager = manager
        self._in_cell = in_cell
        self._since = time.monotonic()
        self._tells = False
        self._state: object = getattr(manager, "execution_state", None)
        self._last: object = None
        self._heard: int | None = None
        self._idle_since = self._since
        self._run_since: float | None = None
        with contextlib.suppress(Exception):  # managers of other kinds have no traits
            if all(manager.has_trait(name) for name in _NAMES):
                manager.observe(self._changed, _NAMES)
                self._tells = True
        self._read()

    def _changed(self, change: Any) -> None:
        self._read()

    def _read(self) -> None:
        before, self._state = self._state, getattr(self._manager, "execution_state", None)
        if self._state != before:
            self._take_change(before)
        # The server's managers raise where there was none yet.
        with contextlib.suppress(Exception):
            self._take_last(getattr(self._manager, "last_activity", None))

    def _take_change(self, before: object) -> None:
        now = time.monotonic()
        if self._state == "busy":
            is_short = now - self._idle_since < _PAUSE_SECONDS
            was_paused = before == "idle" and (is_short or self._in_cell())
            if self._run_since is None or not was_paused:
                self._run_since = time.time()
        elif self._state == "idle":
            self._idle_since = now

    def _take_last(self, last: object) -> None:
        if last is None or last == self._last:
            return
        # The server itself writes here when it starts a kernel, twice, before it listens to it.
        listens = getattr(self._manager, "_activity_stream", None) is not None
        said = self._heard is not None and (listens or not self._tells)
        self._last, self._heard = last, (self._heard or 0) + said

    def is_busy(self) -> bool:
        """True while a cell runs, or while that is not known."""
        if not self._tells:
            self._read()
        state = self._state
        if state == "idle":
            return False
        # A kernel that nobody has talked to yet stays "starting" for ever.
        if state == "starting":
            return time.monotonic() - self._since < _START_SECONDS
        return bool(state != "dead")

    def runs_cell(self) -> bool:
        """True only when the manager says that a cell runs."""
        if not self._tells:
            self._read()
        return self._state == "busy"

    def run_since(self) -> float | None:
        """When the run began that goes on or was the last, Unix seconds. None = there was none, or not known."""
        return self._run_since if self._tells else None

    def heard_count(self) -> int | None:
        """How often the kernel was heard; greater after it said something. None = not known."""
        if not self._tells:
            self._read()
        return self._heard

    def close(self) -> None:
        """Listen no more."""
        with contextlib.suppress(Exception):
            self._manager.unobserve(self._changed, _NAMES)
