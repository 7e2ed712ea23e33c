"""The threads and processes that a cell has started: they may be what fills the memory."""

from __future__ import annotations

import contextlib
import ctypes
import gc
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
# Threads that carry others' work: an exception there would break the pool and not the work.
_SERVING_MODULES = ("multiprocessing", "concurrent.futures.process", "ipykernel", "IPython", "zmq")


class CellWorkers:
    """What was there when the cell began, so that what it started is known."""

    def __init__(self) -> None:
        self._before: set[int] = set()

    def begin(self) -> None:
        """A cell begins; costs some microseconds."""
        self._before = {one.ident or 0 for one in threading.enumerate()}

    def raise_in_threads(self, error: type[BaseException]) -> int:
        """Raise in each thread that the cell started and that runs Python code; the number of them."""
        count = 0
        frames = sys._current_frames()
        for thread in threading.enumerate():
            frame = frames.get(thread.ident or 0)
            if thread.ident in self._before or frame is None or not _may_raise(thread, frame):
                continue
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(error)
            )
            count += 1
        return count


def _may_raise(thread: threading.Thread, frame: FrameType) -> bool:
    if thread is threading.main_thread() or thread.name.startswith("tfguard-"):
        return False
    target = getattr(thread, "_target", None)
    module = getattr(target, "__module__", None) or type(thread).__module__ or ""
    if module.startswith(_SERVING_MODULES):
        return False
    if module == "concurrent.futures.thread" and not _runs_work(frame):
        return False
    return is_safe(frame, in_imports=True)


def _runs_work(frame: FrameType | None) -> bool:
    """True for a thread of a pool that runs a function; False for one that waits for the next."""
    while frame is not None:
        if frame.f_code.co_name == "run" and frame.f_code.co_filename.endswith(_POOL_FILE):
            return True
        frame = frame.f_back
    return False


def offer_children_first() -> None:
    """If the system kills before the guard has stopped the cell, let it kill a child and not the kernel."""
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{child.pid}/oom_score_adj", "w") as file,
            ):
                file.write(_FIRST_FOR_THE_KILLER)


def end_children() -> int:
    """End the worker processes that ``multiprocessing`` started; the number of them.

    They are ended directly: ``Pool.terminate()`` waits for a lock, for ever if a killed worker held it.
    """
    count = 0
    with shielded("ending worker processes"):
        if (pools := sys.modules.get("multiprocessing.pool")) is not None:
            for pool in [one for one in gc.get_objects() if isinstance(one, pools.Pool)]:
                _give_up(pool)
        if (multiprocessing := sys.modules.get("multiprocessing")) is not None:
            for child in multiprocessing.active_children():
                child.terminate()
                count += 1
    return count


def _give_up(pool: Any) -> None:
    """Let a pool start no new workers, and a later ``terminate()`` wait for nothing."""
    pool._state = "TERMINATE"
    for name in ("_worker_handler", "_task_handler"):
        if (handler := getattr(pool, name, None)) is not None:
            handler._state = "TERMINATE"
    pool._terminate.cancel()
