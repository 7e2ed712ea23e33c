"""What a thread does at the moment: it runs the notebook's code, a library's, or it waits.

A thread that waits fills nothing, and an exception breaks it for good: the loop of a client in another thread, the
threads that manage a pool, a queue of log records. Frameworks that serve call the notebook's functions, and handle an
exception of these; an exception in their own code ends the service.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

_LIBRARY = os.path.dirname(os.__file__) + os.sep
# Their functions wait, or hand over what they have waited for.
_WAITING_FILES = tuple(
    _LIBRARY + name.replace("/", os.sep)
    for name in (
        "queue.py",
        "selectors.py",
        "socket.py",
        "ssl.py",
        "subprocess.py",
        "threading.py",
        "multiprocessing/",
        "concurrent/futures/",
    )
)
_POOL_FILES = tuple(_LIBRARY + name for name in ("concurrent", "multiprocessing"))
# Frames that serve: what they call is the work, and they handle its exceptions.
_SERVING_FILES = tuple(
    _LIBRARY + name.replace("/", os.sep)
    for name in ("asyncio/", "socketserver.py", "http/server.py", "logging/handlers.py")
)
# They call what the thread was started for.
_STARTING = {
    "run": ("threading.py", "concurrent/futures/thread.py"),
    "_bootstrap_inner": ("threading.py",),
    "worker": ("multiprocessing/pool.py",),
}


class Activity(enum.Enum):
    """What a thread does. ``SERVES``: the code of a loop or server, between two calls of the notebook's functions."""

    NOTEBOOK = "notebook"
    LIBRARY = "library"
    SERVES = "serves"
    WAITS = "waits"


def activity(frame: FrameType | None, namespace: Mapping[str, Any]) -> Activity:
    """What a thread does.

    Args:
        frame: Its innermost frame.
        namespace: The globals of the user's cells.
    """
    if frame is None or is_waiting(frame):
        return Activity.WAITS
    found = Activity.WAITS  # if it was started with a function in C, or for none
    for one in _stack(frame):
        code = one.f_code
        if _is_of_notebook(one, namespace):
            return Activity.NOTEBOOK
        if code.co_filename.startswith(_SERVING_FILES):
            return Activity.SERVES
        if _starts(code):
            return found
        found = Activity.LIBRARY
    return found


def notebook_function(frame: FrameType | None, namespace: Mapping[str, Any]) -> str:
    """Name of the function of the notebook that the loop or server on the stack of this frame has called; empty if there is none."""
    name = ""
    for one in _stack(frame):
        if _is_of_notebook(one, namespace):
            name = one.f_code.co_name
        elif one.f_code.co_filename.startswith(_SERVING_FILES) or _starts(one.f_code):
            break
    return name


def _is_of_notebook(frame: FrameType, namespace: Mapping[str, Any]) -> bool:
    return frame.f_globals is namespace or frame.f_globals.get("__name__") == "__main__"


def is_waiting(frame: FrameType) -> bool:
    """True if the function of this frame only waits, for a lock, a queue, a socket, a process."""
    return frame.f_code.co_filename.startswith(_WAITING_FILES) and not _works(frame.f_code)


def waits_for_pool(frame: FrameType | None) -> bool:
    """True if a function of a pool is on the stack of this frame, which waits for work."""
    return (
        frame is not None
        and is_waiting(frame)
        and any(one.f_code.co_filename.startswith(_POOL_FILES) for one in _stack(frame))
    )


def _works(code: CodeType) -> bool:
    """True for the functions of the waiting files that call the work of a pool one by one."""
    return code.co_name in ("mapstar", "starmapstar", "_process_chunk")


def _starts(code: CodeType) -> bool:
    return any(
        code.co_filename == _LIBRARY + name.replace("/", os.sep)
        for name in _STARTING.get(code.co_name, ())
    )


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
