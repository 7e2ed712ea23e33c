"""Frees the objects of a stopped cell."""

from __future__ import annotations

import gc
import sys

from .error import cut_tracebacks

_ERRORS, _TRACEBACK = ("last_value", "last_exc"), "last_traceback"


def release(error: BaseException | None) -> None:
    """Free the objects that only the ended cell referenced. `error`: the exception that ended it, which was shown."""
    cut_tracebacks(error)
    for name in _ERRORS:
        cut_tracebacks(getattr(sys, name, None))
    if hasattr(sys, _TRACEBACK):
        setattr(sys, _TRACEBACK, None)
    gc.collect()
