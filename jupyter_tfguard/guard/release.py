"""Gives memory back: what a stopped cell held, and what allocators keep although nobody uses it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Callable

from .error import release_frames

_ERRORS = ("last_value", "last_exc")


def release(error: BaseException | None) -> None:
    """Free what only the ended cell held. `error`: what ended it."""
    release_frames(error)
    for name in _ERRORS:
        release_frames(getattr(sys, name, None))
    gc.collect()


def give_back(release_pool: Callable[[], object]) -> None:
    """Give free memory of allocators back to the system; takes some milliseconds.

    Args:
        release_pool: Does it for TensorFlow's pool.
    """
    release_pool()
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)
