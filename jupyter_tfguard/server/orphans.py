"""When a server looks for kernels that died unwatched: at its start, every five minutes, and where it missed an end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from ..record.alive import FRESH_SECONDS

_BUSY_SECONDS = 5.0
_MISSED_SECONDS = 1.0


class OrphanLooks:
    """All methods are for the server's event loop.

    Args:
        look: Reads and writes files; called in a thread, once at a time.
    """

    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look
        self._thread: threading.Thread | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Look now, and from here on; a kernel of another machine is known to be dead by its silence only."""
        pause = FRESH_SECONDS
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._look, name="tfguard-files", daemon=True)
            self._thread.start()
        else:
            pause = _BUSY_SECONDS
        self._next(pause)

    def soon(self) -> None:
        """A kernel of this server died before it was watched."""
        self._next(_MISSED_SECONDS)

    def _next(self, seconds: float) -> None:
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.begin)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
