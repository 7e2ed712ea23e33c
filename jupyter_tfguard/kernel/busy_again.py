"""Says "busy" again where the kernel said "idle" because a request was answered while a cell runs.

ipykernel says "idle" after each request, on its control channel and on a subshell too, and pages believe the last word.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from ..shield import shield
from ..threads import background_thread

_FIRST_SECONDS = 0.05
_EVERY_SECONDS = 1.0
# How late a page may take its subshell away, which is a request too. A panel that is looked at asks each 15 s.
_LONGEST_SECONDS = 60.0


class BusyAgain:
    """Knows the kernel's way to its pages.

    Args:
        kernel: ipykernel's.
        is_running: Does a cell run?
    """

    def __init__(self, kernel: Any, is_running: Callable[[], bool]) -> None:
        self._kernel = kernel
        self._is_running = is_running
        self._until = 0.0
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def soon(self) -> None:
        """Once this request on the control channel is done; called on its loop."""
        asyncio.get_running_loop().call_later(_FIRST_SECONDS, self._say)

    def for_a_while(self) -> None:
        """Each second, for a minute: a page that is busy takes its subshell away late, one that is gone never."""
        with self._lock:
            self._until = time.monotonic() + _LONGEST_SECONDS
            if self._thread is None or not self._thread.is_alive():
                self._thread = background_thread(self._follow, "tfguard-busy")
                self._thread.start()

    def stop(self) -> None:
        """Say nothing more."""
        with self._lock:
            self._until = 0.0

    def leave_child(self) -> None:
        """In a forked child: the thread is the parent's, and so is what it held."""
        self._lock = threading.Lock()
        self._thread = None

    @shield("what follows a request by a comm")
    def _follow(self) -> None:
        seconds = _FIRST_SECONDS
        while True:
            time.sleep(seconds)
            seconds = _EVERY_SECONDS
            with self._lock:
                if time.monotonic() > self._until:
                    self._thread = None
                    return
            self._say()

    @shield("what follows a request")
    def _say(self) -> None:
        if self._is_running():
            self._publish("busy")
            if not self._is_running():
                self._publish("idle")  # the cell's own "idle" may have come before

    def _publish(self, state: str) -> None:
        kernel = self._kernel
        content = {"execution_state": state}
        kernel.session.send(kernel.iopub_socket, "status", content, ident=kernel._topic("status"))
