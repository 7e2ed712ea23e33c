"""Watches the callbacks of widgets and other comms as cells are watched: they run outside cells."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...shield import shielded

if TYPE_CHECKING:
    from ...guard.memory_guard import MemoryGuard
    from ...guard.stops import Stop

_MESSAGES = ("comm_open", "comm_msg", "comm_close")


class Callbacks:
    """Wraps the kernel's handlers of comm messages.

    Args:
        kernel: The kernel.
        guard: The memory guard.
        on_stop: Called with each stop of a callback.
    """

    def __init__(self, kernel: Any, guard: MemoryGuard, on_stop: Callable[[Stop], None]) -> None:
        self._handlers: dict[str, Any] = getattr(kernel, "shell_handlers", {})
        self._guard = guard
        self._on_stop = on_stop
        self._wrapped: dict[str, tuple[Any, Any]] = {}  # the original, and ours

    def start(self) -> None:
        """Wrap the handlers."""
        for message in _MESSAGES:
            if (original := self._handlers.get(message)) is not None:
                self._wrapped[message] = original, self._watched(original)
                self._handlers[message] = self._wrapped[message][1]

    def stop(self) -> None:
        """Restore the handlers."""
        for message, (original, ours) in self._wrapped.items():
            if self._handlers.get(message) is ours:
                self._handlers[message] = original
        self._wrapped.clear()

    def _watched(self, original: Any) -> Any:
        @functools.wraps(original)
        def run_watched_callback(*args: Any, **kwargs: Any) -> Any:
            is_watched = False
            with shielded("start of a callback"):
                is_watched = self._guard.callback_begins()
            try:
                return original(*args, **kwargs)
            finally:
                if is_watched:
                    self._end()

        return run_watched_callback

    def _end(self) -> None:
        with shielded("end of a callback"):
            if (stop := self._guard.cell_ends(None)) is not None:
                self._on_stop(stop)
