"""Threads of the guard inside the user's process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def background_thread(target: Callable[[], Any], name: str) -> threading.Thread:
    """Return a daemon thread, not started, that debuggers neither list nor stop at breakpoints.

    Source: pydevd (debugpy) reads both attributes; it sets them for its own threads (debugpy 1.8).
    """
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.pydev_do_not_trace = True  # type: ignore[attr-defined]
    thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
    return thread
