"""Raises the exception of a stop in the main thread, as soon as its code is in a safe place."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any

from .safe_place import in_cell, is_safe
from .snapshot import Snapshot
from .stops import WatchedCell

# How long to wait for an import: a partly imported TensorFlow cannot be imported again, but a killed kernel is worse.
_IMPORT_SECONDS = 0.3
_CALLS = ("call", "c_call")  # profile events


class MainThread:
    """The signal handler.

    Args:
        namespace: The globals of the user's cells.
        state: Returns the watched cell, None if there is none, and the state of the sampler.
        exempt: Refuses nothing in this thread meanwhile.
        exception: Returns the exception to raise in a frame; None for none, at least not yet.
    """

    def __init__(
        self,
        namespace: Mapping[str, Any],
        state: Callable[[], tuple[WatchedCell | None, Snapshot]],
        exempt: Callable[[], AbstractContextManager[None]],
        exception: Callable[[WatchedCell, Snapshot, FrameType], BaseException | None],
    ) -> None:
        self._namespace = namespace
        self._state = state
        self._exempt = exempt
        self._exception = exception
        self._signal = 0
        self._in_handler = False
        self._earlier_handler: Any = None

    def start(self, signal_number: int) -> None:
        """Handle a signal. Call from the main thread."""
        self._signal = signal_number
        self._earlier_handler = signal.signal(signal_number, self._on_signal)

    def stop(self) -> None:
        """Restore the earlier handler."""
        if signal.getsignal(self._signal) == self._on_signal:
            signal.signal(self._signal, self._earlier_handler or signal.SIG_DFL)

    def end_profile(self) -> None:
        """Wait no longer for a safe place."""
        if sys.getprofile() == self._on_call:
            sys.setprofile(None)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._in_handler:
            return  # signals come until the stop is delivered, on a busy machine faster than this handler runs
        self._in_handler = True
        try:
            with self._exempt():
                stopped = self._stop_at(frame, may_wait_for_imports=False)
        finally:
            self._in_handler = False
        if stopped is not None:
            raise stopped

    def _on_call(self, frame: FrameType, event: str, argument: object) -> None:
        """Profile hook, set until a safe place is reached: the next signal might come only after the cell has ended."""
        if event not in _CALLS:
            return  # a call that has ended may have taken a lock that its caller does not know of yet
        with self._exempt():
            stopped = self._stop_at(frame, may_wait_for_imports=True)
        if stopped is not None:
            raise stopped

    def _stop_at(
        self, frame: FrameType | None, *, may_wait_for_imports: bool
    ) -> BaseException | None:
        """The exception to raise in this frame, if a stop is due and the place is safe.

        Args:
            frame: The innermost frame of the main thread.
            may_wait_for_imports: False to interrupt an import that takes long.
        """
        # First: the native library detects by this call that the main thread is responsive and needs no interruption.
        cell, seen = self._state()
        if cell is None or not seen.tripped or seen.delivered:
            self.end_profile()
            return None
        if frame is None:
            return None
        in_imports = not may_wait_for_imports and seen.trip_seconds_ago > _IMPORT_SECONDS
        if in_cell(frame, self._namespace) and is_safe(frame, in_imports=in_imports):
            stopped = self._exception(cell, seen, frame)
            if stopped is not None:
                self.end_profile()
            return stopped
        # In an unsafe place, or the cell is awaiting something.
        if sys.getprofile() is None:
            sys.setprofile(self._on_call)
        return None
