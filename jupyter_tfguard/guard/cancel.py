"""Stops running TensorFlow functions from outside, by TensorFlow's own way: its cancellation manager.

A function that TensorFlow compiled runs in native code, where no Python exception gets in; a shuffle buffer of a data set that is
used in ``fit`` fills there for minutes. Run under a cancellation manager it returns within milliseconds of the call.
Eager operations cannot be cancelled.

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
        """Let the functions of this cell be cancelled. A manager of the user's own stays in force."""
        module = sys.modules.get(_MODULE)
        with shielded("preparing to cancel TensorFlow functions"):
            if module is not None and getattr(module, "_active_context", self) is None:
                self._manager = module.CancellationManager()
                module._active_context = self._manager  # type: ignore[attr-defined]

    @property
    def manager(self) -> Any:
        """The one that is in force; None when there is none."""
        return self._manager

    def renew(self) -> None:
        """Let the next functions run: under a manager that was used, each would be stopped."""
        self.end()
        self.begin()

    def end(self) -> None:
        """The cell has ended."""
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
    """Stop what runs under a manager, and what would run under it later. `manager`: None does nothing."""
    if manager is not None:
        with shielded("cancelling TensorFlow functions"):
            manager.start_cancel()
