"""Frees memory: the objects of a stopped cell, and free memory that allocators still hold."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Callable

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


def give_back(release_pool: Callable[[], object]) -> None:
    """Return free memory of allocators to the system; takes a few milliseconds.

    Args:
        release_pool: Releases the free memory of TensorFlow's pool.
    """
    release_pool()
    with contextlib.suppress(OSError, AttributeError):  # a C library other than glibc
        ctypes.CDLL(None).malloc_trim(0)
