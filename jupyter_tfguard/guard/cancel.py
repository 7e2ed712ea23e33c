"""Stops running TensorFlow functions from another thread, with TensorFlow's cancellation manager.

A compiled function runs in native code, where no Python exception can be raised; the shuffle buffer of a data set used
in ``fit`` fills there for minutes. Under a cancellation manager the function returns within milliseconds of the
cancellation. Eager operations cannot be cancelled.

Source: tensorflow/python/eager/cancellation.py, the same from 2.15 to 2.21.
"""

from __future__ import annotations

import sys
from typing import Any

from ..shield import shielded

_MODULE = "tensorflow.python.eager.cancellation"


class Cancellation:
    """The cancellation manager of the running cell; does nothing while TensorFlow is not imported."""

    def __init__(self) -> None:
        self._manager: Any = None

    def begin(self) -> None:
        """Make the functions of this cell cancellable. If the user has set a manager, it stays in use."""
        module = sys.modules.get(_MODULE)
        with shielded("preparing to cancel TensorFlow functions"):
            if module is not None and getattr(module, "_active_context", self) is None:
                self._manager = module.CancellationManager()
                module._active_context = self._manager  # type: ignore[attr-defined]

    @property
    def manager(self) -> Any:
        """The manager that this object has set; None if there is none."""
        return self._manager

    def renew(self) -> None:
        """Install a new manager: under a cancelled one, every function would be stopped."""
        self.end()
        self.begin()

    def end(self) -> None:
        """Remove the manager at the end of the cell."""
        module = sys.modules.get(_MODULE)
        if module is not None and getattr(module, "_active_context", None) is self._manager:
            module._active_context = None  # type: ignore[attr-defined]
        self._manager = None


def is_cancelled_error(error: BaseException) -> bool:
    """True for TensorFlow's error of a cancelled function."""
    return any(
        kind.__name__ == "CancelledError" and kind.__module__.startswith("tensorflow.")
        for kind in type(error).__mro__
    )


def cancel(manager: Any) -> None:
    """Stop all functions that run under a manager, and any that start under it later. Does nothing for None."""
    if manager is not None:
        with shielded("cancelling TensorFlow functions"):
            manager.start_cancel()
