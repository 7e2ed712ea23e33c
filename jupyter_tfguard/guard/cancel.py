"""Stops running TensorFlow functions from another thread, with TensorFlow's cancellation managers.

A compiled function runs in native code, where no Python exception can be raised; the shuffle buffer of a data set used
in ``fit`` fills there for minutes. Under a cancellation manager the function returns within milliseconds of the
cancellation. Eager operations cannot be cancelled.

A function that fails cancels its manager, also when it only reaches the end of a data set. So each call gets one of its
own: under a common one, every later call of the cell and the calls of other threads would be cancelled too.

Source: tensorflow/python/eager/cancellation.py, the same from 2.15 to 2.21.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ..shield import shielded

_MODULE = "tensorflow.python.eager.cancellation"
_NESTED_CALLS = 4  # of a function within a function, in one thread


class CancellableCalls:
    """Takes the place of a ``CancellationManager`` while a cell runs. Makes one for each call of a function.

    Args:
        new_manager: TensorFlow's class.
    """

    def __init__(self, new_manager: Callable[[], Any]) -> None:
        self._new_manager = new_manager
        self._newest: dict[int, deque[Any]] = {}  # by thread
        self._is_cancelled = False

    @property
    def _impl(self) -> Any:
        """Read by TensorFlow for each call: the manager in native code."""
        manager = self._new_manager()
        calls = self._newest.setdefault(threading.get_ident(), deque(maxlen=_NESTED_CALLS))
        calls.append(manager)
        if self._is_cancelled:
            manager.start_cancel()
        return manager._impl

    def cancel(self) -> None:
        """Stop all running functions, and any that start later."""
        self._is_cancelled = True
        for calls in list(self._newest.values()):
            for manager in list(calls):
                manager.start_cancel()


class Cancellation:
    """Makes the functions of the running cell cancellable; does nothing while TensorFlow is not imported.

    Attributes:
        calls: The calls of this cell; None if they cannot be cancelled.
    """

    def __init__(self) -> None:
        self.calls: CancellableCalls | None = None

    def begin(self) -> None:
        """Make the functions of this cell cancellable. If the user has set a manager, it stays in use."""
        module = sys.modules.get(_MODULE)
        if module is not None and getattr(module, "_active_context", self) is None:
            self.calls = CancellableCalls(module.CancellationManager)
            module._active_context = self.calls  # type: ignore[attr-defined]

    def renew(self) -> None:
        """Let functions run again after they were cancelled."""
        self.end()
        self.begin()

    def end(self) -> None:
        """Undo :meth:`begin` at the end of the cell."""
        module = sys.modules.get(_MODULE)
        if module is not None and getattr(module, "_active_context", None) is self.calls:
            module._active_context = None  # type: ignore[attr-defined]
        self.calls = None


def is_cancelled_error(error: BaseException) -> bool:
    """True for TensorFlow's error of a cancelled function."""
    return any(
        kind.__name__ == "CancelledError" and kind.__module__.startswith("tensorflow.")
        for kind in type(error).__mro__
    )


def cancel(calls: CancellableCalls | None) -> None:
    """Stop the functions of a cell. Does nothing for None."""
    if calls is not None:
        with shielded("cancelling TensorFlow functions"):
            calls.cancel()
