"""Stops the threads that a cell has started, because they may fill the memory.

A thread that does next to nothing is left alone: it fills nothing, and what it waits for may be of use for long.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any, NamedTuple

from ..collectors.thread_work import ThreadWork, thread_work
from ..threads import frames_of_others
from .activity import Activity, activity, notebook_function
from .safe_place import is_safe
from .tasks import cancel_notebook, loop_of
from .thread_error import raise_in

# Service threads of pools and of Jupyter.
_SERVING_MODULES = ("multiprocessing", "concurrent.futures.process", "ipykernel", "IPython", "zmq")
_SUBSHELL = "SubshellThread"  # of ipykernel 7: runs cells beside those of the main thread
_POOL_WORKERS = (("multiprocessing.pool", "worker"), ("concurrent.futures.thread", "_worker"))


class _Least(NamedTuple):
    """From which work on a thread is stopped: CPU time, also as a fraction of the time, or pages touched first."""

    cpu_seconds: float
    cpu_fraction: float
    fault_count: int


_LEAST = {
    Activity.NOTEBOOK: _Least(0.002, 0.05, 64),
    # Libraries have threads of their own, which do a little work now and then.
    Activity.LIBRARY: _Least(0.004, 0.1, 256),
    # Between two waits it may have done anything; only what has filled memory is of interest.
    Activity.WAITS: _Least(math.inf, 1.0, 512),
    Activity.SERVES: _Least(math.inf, 1.0, 512),
}


# In the first milliseconds: one that fills fast fills everything before more is known.
_AT_ONCE = _Least(0.0005, 0.2, 4)
_AT_WORK = (Activity.NOTEBOOK, Activity.LIBRARY)


class CellThreads:
    """Tracks the threads that exist when a cell begins, to identify those that the cell started.

    Args:
        namespace: The globals of the user's cells.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._before: set[int] = set()

    def begin(self) -> None:
        """Note the threads at the start of a cell; takes a few microseconds."""
        self._before = {one.ident or 0 for one in threading.enumerate()}

    def started(self) -> list[threading.Thread]:
        """The threads that the cell has started."""
        return [
            one for one in threading.enumerate() if one.ident not in self._before and is_users(one)
        ]

    def earlier(self) -> list[threading.Thread]:
        """The threads of earlier cells."""
        return [one for one in threading.enumerate() if one.ident in self._before and is_users(one)]

    def may_work_later(self) -> bool:
        """True if a thread lives that runs a function of the notebook, or will run one."""
        if any(self._calls_notebook(one) for one in threading.enumerate()):
            return True
        return bool(self.at_work(earlier=True))

    def cancel_timers(self, *, earlier: bool = False) -> None:
        """Cancel the timers of the cell that will call a function of the notebook; it may start the next one.

        Args:
            earlier: Whether to cancel those of earlier cells as well.
        """
        for one in self.started() + (self.earlier() if earlier else []):
            if isinstance(one, threading.Timer) and self._calls_notebook(one):
                one.cancel()

    def _calls_notebook(self, thread: threading.Thread) -> bool:
        function = getattr(thread, "_target", None) or getattr(thread, "function", None)
        function = getattr(function, "__func__", function)
        return getattr(function, "__globals__", None) is self._namespace

    def at_work(self, *, earlier: bool = False) -> list[threading.Thread]:
        """The threads that the cell has started and that do not only wait.

        Args:
            earlier: Whether to return those of earlier cells as well.
        """
        threads = self.started() + (self.earlier() if earlier else [])
        if not threads:
            return []
        frames = frames_of_others()
        return [
            one
            for one in threads
            if activity(frames.get(one.ident or 0), self._namespace) in _AT_WORK
        ]


class ThreadStop:
    """Raises in each of some threads as soon as it works in a place where an exception does no harm.

    Args:
        threads: The threads.
        namespace: The globals of the user's cells.
        error: What to raise.
    """

    def __init__(
        self,
        threads: Iterable[threading.Thread],
        namespace: Mapping[str, Any],
        error: type[BaseException],
    ) -> None:
        self._namespace = namespace
        self._error = error
        self._began = time.monotonic()
        self._left = {one: thread_work(one.native_id) for one in threads}
        self._has_looked = False
        self._due: set[threading.Thread] = set()  # they work, in an unsafe place

    @property
    def is_over(self) -> bool:
        """True if no thread is left that may have to be stopped."""
        return not self._left

    def only_due(self) -> None:
        """Forget the threads that have not worked so far: from now on they may work for another cell."""
        self._left = {one: work for one, work in self._left.items() if one in self._due}

    def poll(self) -> None:
        """Raise where it is possible now. Look for the first time some milliseconds after the beginning."""
        frames = frames_of_others()
        for thread, before in list(self._left.items()):
            frame = frames.get(thread.ident or 0)
            if frame is None:
                del self._left[thread]  # it has ended
                continue
            does = activity(frame, self._namespace)
            if not self._is_at_work(thread, does, before):
                continue
            self._due.add(thread)
            if does in (Activity.WAITS, Activity.SERVES):
                self._stop_between(thread, frame)
            elif is_safe(frame, in_imports=True):
                self._raise_in(thread)
        self._has_looked = True

    def _is_at_work(
        self, thread: threading.Thread, does: Activity, before: ThreadWork | None
    ) -> bool:
        least, now = _LEAST[does], thread_work(thread.native_id)
        if before is None or now is None:
            return does is Activity.NOTEBOOK
        if does is Activity.NOTEBOOK and not self._has_looked:
            least = _AT_ONCE
        seconds = now.cpu_seconds - before.cpu_seconds
        share = least.cpu_fraction * (time.monotonic() - self._began)
        return seconds >= max(least.cpu_seconds, share) or (
            now.fault_count - before.fault_count >= least.fault_count
        )

    def _stop_between(self, thread: threading.Thread, frame: FrameType) -> None:
        """Stop a thread that fills memory between two short waits."""
        if (loop := loop_of(frame)) is not None:
            del self._left[thread]
            loop.call_soon_threadsafe(cancel_notebook, loop, self._namespace)
        elif notebook_function(frame, self._namespace):
            self._raise_in(thread)

    def _raise_in(self, thread: threading.Thread) -> None:
        raise_in(thread.ident or 0, self._error)
        # It went on while its work was read. A pool's thread that waits by now would end by the exception, together
        # with the next order, or with the sign to end that it has to pass on to the others.
        frame = frames_of_others().get(thread.ident or 0)
        does = activity(frame, self._namespace)
        if does in _AT_WORK or notebook_function(frame, self._namespace):
            del self._left[thread]
        else:
            raise_in(thread.ident or 0, None)


def is_users(thread: threading.Thread) -> bool:
    """False for the main thread, and for service threads of the guard, of Jupyter, of debuggers and of pools."""
    if is_of_pool(thread) or type(thread).__name__ == _SUBSHELL:
        return True
    if thread is threading.main_thread() or getattr(thread, "is_pydev_daemon_thread", False):
        return False
    return not _function(thread)[0].startswith(_SERVING_MODULES)


def is_of_pool(thread: threading.Thread) -> bool:
    """True for a thread that runs work of a thread pool."""
    return _function(thread) in _POOL_WORKERS


def _function(thread: threading.Thread) -> tuple[str, str]:
    """Module and name of the function that the thread was started for."""
    target = getattr(thread, "_target", None)
    module = getattr(target, "__module__", None) or type(thread).__module__ or ""
    return module, getattr(target, "__name__", "")
