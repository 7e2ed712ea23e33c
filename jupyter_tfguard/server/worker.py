"""Does what may wait for a file, one thing after another, in a thread that lives only while there is something to do."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from ..shield import shielded


class Worker:
    """A queue with at most one thread; a thousand kernels that are shut down do not make a thousand.

    Args:
        name: Of the thread. It is no reason for the process to stay.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: deque[Callable[[], None]] = deque()
        self._running = False
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], None]) -> None:
        """Have `work` done; returns at once."""
        with self._lock:
            self._queue.append(work)
            if self._running:
                return
            self._running = True
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._running = False
                    return
                work = self._queue.popleft()
            with shielded("removing the recording of a kernel that was shut down"):
                work()
