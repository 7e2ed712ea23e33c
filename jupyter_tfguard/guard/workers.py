"""Stops the threads and processes that a cell has started, because they may fill the memory."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from types import FrameType
from typing import Any

import psutil

from ..shield import shielded
from .safe_place import is_safe

_FIRST_FOR_THE_KILLER = "900"  # of -1000 to 1000. Source: proc_pid_oom_score_adj(5)
_POOL_FILE = os.path.join("concurrent", "futures", "thread.py")
# Service threads of pools and of Jupyter: an exception there would break the pool without stopping the work.
_SERVING_MODULES = ("multiprocessing", "concurrent.futures.process", "ipykernel", "IPython", "zmq")


class CellWorkers:
    """Tracks the threads that exist when a cell begins, to identify those that the cell started."""

    def __init__(self) -> None:
        self._before: set[int] = set()

    def begin(self) -> None:
        """Note the threads at the start of a cell; takes a few microseconds."""
        self._before = {one.ident or 0 for one in threading.enumerate()}

    def threads(self) -> list[threading.Thread]:
        """The threads that the cell has started."""
        return [one for one in threading.enumerate() if one.ident not in self._before]


def raise_in(threads: list[threading.Thread], error: type[BaseException]) -> list[threading.Thread]:
    """Raise in each of these threads that runs Python code of the user.

    Returns:
        Those in a place where an exception does harm, to try again.
    """
    frames = sys._current_frames()
    later = []
    for thread in threads:
        frame = frames.get(thread.ident or 0)
        if frame is None or not _is_of_user(thread, frame):
            continue
        if not is_safe(frame, in_imports=True):
            later.append(thread)
            continue
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident or 0), ctypes.py_object(error)
        )
    return later


def _is_of_user(thread: threading.Thread, frame: FrameType) -> bool:
    if thread is threading.main_thread() or thread.name.startswith("tfguard-"):
        return False
    target = getattr(thread, "_target", None)
    module = getattr(target, "__module__", None) or type(thread).__module__ or ""
    if module.startswith(_SERVING_MODULES):
        return False
    return module != "concurrent.futures.thread" or _runs_work(frame)


def _runs_work(frame: FrameType | None) -> bool:
    """True if a pool thread runs a function; False if it waits for one."""
    while frame is not None:
        if frame.f_code.co_name == "run" and frame.f_code.co_filename.endswith(_POOL_FILE):
            return True
        frame = frame.f_back
    return False


def offer_children_first() -> None:
    """Make the OOM killer choose a child process before the kernel, in case the guard is too slow."""
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{child.pid}/oom_score_adj", "w") as file,
            ):
                file.write(_FIRST_FOR_THE_KILLER)


def end_children() -> int:
    """Terminate the worker processes that ``multiprocessing`` started; returns their number.

    They are terminated directly: ``Pool.terminate()`` waits for a lock, and never returns if a killed worker held it.
    """
    count = 0
    with shielded("ending worker processes"):
        for pool in _pools():
            _abandon(pool)
        if (multiprocessing := sys.modules.get("multiprocessing")) is not None:
            for child in multiprocessing.active_children():
                child.terminate()
                count += 1
    return count


def _pools() -> list[Any]:
    """The pools of ``multiprocessing``, by the finalizers that it registers for them."""
    module, util = sys.modules.get("multiprocessing.pool"), sys.modules.get("multiprocessing.util")
    if module is None or util is None:
        return []
    found = (
        reference()
        for finalizer in tuple(util._finalizer_registry.values())
        if (reference := finalizer._weakref) is not None
    )
    return [one for one in found if isinstance(one, module.Pool)]


def _abandon(pool: Any) -> None:
    """Prevent a pool from starting new workers, and a later ``terminate()`` from waiting."""
    pool._state = "TERMINATE"
    for name in ("_worker_handler", "_task_handler"):
        if (handler := getattr(pool, name, None)) is not None:
            handler._state = "TERMINATE"
    pool._terminate.cancel()
