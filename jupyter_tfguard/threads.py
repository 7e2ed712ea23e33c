"""Threads of the guard inside the user's process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


def background_thread(target: Callable[[], Any], name: str) -> threading.Thread:
    """Return a daemon thread, not started, that debuggers neither list nor stop at breakpoints.

    Source: pydevd (debugpy) reads both attributes; it sets them for its own threads (debugpy 1.8).
    """
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.pydev_do_not_trace = True  # type: ignore[attr-defined]
    thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
    return thread


def frames_of_others() -> dict[int, FrameType]:
    """The innermost frames of the other threads, by the threads' ids."""
    frames = sys._current_frames()
    # A frame that refers to itself keeps all these frames, and their variables, until the next garbage collection.
    del frames[threading.get_ident()]
    return frames
