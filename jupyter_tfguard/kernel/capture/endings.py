"""Records orderly ends of the kernel: ``quit`` in user code, a shutdown request, or the exit of the interpreter.

A crash leaves no such record. This distinguishes a crash from an orderly end.
"""

from __future__ import annotations

import atexit
import functools
import os
from collections.abc import Callable
from typing import Any

from ...record.events import QUIT, Emit, ExitRequested
from ...shield import shield, shielded

_REQUEST = "shutdown_request"
_EXIT = "exit"


class Endings:
    """Watches for shutdown requests, ``quit`` and interpreter exit.

    Args:
        shell: The IPython shell, with its kernel.
        emit: Writes an event to the journal.
        on_exit: Called with the reason when the interpreter ends; not in forked children.
    """

    def __init__(self, shell: Any, emit: Emit, on_exit: Callable[[str], None]) -> None:
        self._shell = shell
        self._emit = emit
        self._on_exit = on_exit
        self._pid = os.getpid()
        self._reason = _EXIT
        self._wrapped: list[tuple[dict[str, Any], Any, Any]] = []

    def start(self) -> None:
        """Install the hooks."""
        # Registered after ipykernel's exit handler, so it runs first. That handler waits for a reader of fd 2, which we
        # feed.
        atexit.register(self._at_exit)
        with shielded("watching for the kernel's shutdown"):
            self._shell.observe(self._exit_now, "exit_now")
            for channel in ("control", "shell"):  # a kernel that is not ipykernel has none
                self._wrap(getattr(self._shell.kernel, f"{channel}_handlers", {}))

    def stop(self) -> None:
        """Remove the hooks."""
        atexit.unregister(self._at_exit)
        with shielded("watching for the kernel's shutdown"):
            self._shell.unobserve(self._exit_now, "exit_now")
            for handlers, ours, original in self._wrapped:
                if handlers.get(_REQUEST) is ours:
                    handlers[_REQUEST] = original
        self._wrapped.clear()

    def is_unasked(self, reason: str) -> bool:
        """True for the end of the interpreter without a request; False if requests cannot be seen in this kernel."""
        return reason == _EXIT and bool(self._wrapped)

    def _wrap(self, handlers: dict[str, Any]) -> None:
        original = handlers.get(_REQUEST)
        if original is None:
            return

        @functools.wraps(original)
        def shutdown_request(stream: Any, ident: Any, parent: Any) -> Any:
            self._requested(parent)
            return original(stream, ident, parent)

        handlers[_REQUEST] = shutdown_request
        self._wrapped.append((handlers, shutdown_request, original))

    @shield("noting a shutdown request")
    def _requested(self, parent: Any) -> None:
        self._reason = _REQUEST
        restart = parent.get("content", {}).get("restart")
        self._emit(ExitRequested(how=_REQUEST, restart=restart))

    @shield("noting quit")
    def _exit_now(self, change: Any) -> None:
        # A shutdown request also sets exit_now, after `_requested` has recorded it.
        if change["new"] and self._reason != _REQUEST:
            self._reason = QUIT
            self._emit(ExitRequested(how=QUIT, restart=None))

    @shield("end of the kernel")
    def _at_exit(self) -> None:
        if os.getpid() == self._pid:
            self._on_exit(self._reason)
