"""Ends the processes that a stopped cell has started, because they may fill the memory."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from ..collectors.process import descendants
from ..errors import SourceUnavailable
from ..shield import shielded
from ..threads import background_thread
from .children import own_bytes

_FIRST_FOR_THE_KILLER = "900"  # of -1000 to 1000. Source: proc_pid_oom_score_adj(5)
# They keep the threads that manage their workers by the same name.
_EXECUTORS = (
    "concurrent.futures.process",
    "loky.process_executor",
    "joblib.externals.loky.process_executor",
)


def offer_children_first() -> None:
    """Make the OOM killer choose a child process before the kernel, in case the guard is too slow."""
    with contextlib.suppress(SourceUnavailable):
        for child in descendants(os.getpid()):
            with contextlib.suppress(OSError), open(f"/proc/{child}/oom_score_adj", "w") as file:
                file.write(_FIRST_FOR_THE_KILLER)


class Children:
    """The processes that ``multiprocessing`` has started for the running cell.

    Left alone, unless they are large, are idle workers of pools, and processes of earlier cells such as that of a
    ``Manager``.

    Args:
        error: Makes the exception for what a pool was still to return.
    """

    def __init__(self, error: Callable[[], BaseException]) -> None:
        self._error = error
        self._older: frozenset[int] = frozenset()

    def begin(self) -> None:
        """Note the processes at the start of a cell; takes a microsecond."""
        self._older = frozenset(id(child) for child in _children())

    def end(self, large_bytes: int) -> bool:
        """Terminate those that work for this cell; True if a pool of an earlier cell ended with them.

        They are terminated directly: ``Pool.terminate()`` waits for a lock, and never returns if a killed worker held it.

        Args:
            large_bytes: Any process that holds as much is terminated, too.
        """
        has_ended_older = False
        with shielded("ending worker processes"):
            busy, idle = _workers()
            ended = [
                child
                for child in _children()
                if id(child) in busy
                or (id(child) not in self._older and id(child) not in idle)
                or own_bytes(child.pid, os.getpid()) >= large_bytes
            ]
            for pool in _pools():
                if any(worker in ended for worker in pool._pool):
                    _abandon(pool, self._error)
                    has_ended_older |= any(id(worker) in self._older for worker in pool._pool)
            for child in ended:
                with contextlib.suppress(Exception):  # it has ended
                    child.terminate()
            _end_results({id(child) for child in ended})
        return has_ended_older

    def count(self) -> int:
        """The number of processes of this cell that run, without idle workers of pools."""
        _, idle = _workers()
        return sum(
            id(child) not in self._older and id(child) not in idle and child.is_alive()
            for child in _children()
        )


def thread_pools() -> list[Any]:
    """The running ``multiprocessing.pool.ThreadPool``."""
    module = sys.modules.get("multiprocessing.pool")
    return (
        []
        if module is None
        else [one for one in _all_pools() if isinstance(one, module.ThreadPool)]
    )


def _pools() -> list[Any]:
    threads = thread_pools()
    return [one for one in _all_pools() if one not in threads]


def _children() -> list[Any]:
    module = sys.modules.get("multiprocessing.process")
    return [] if module is None else list(module._children)


def _workers() -> tuple[set[int], set[int]]:
    """The worker processes of pools and executors, by id: of those that have work, and of the others."""
    busy: set[int] = set()
    idle: set[int] = set()
    for pool in _pools():
        (busy if pool._cache else idle).update(map(id, pool._pool))
    for name in _EXECUTORS:
        for manager in list(getattr(sys.modules.get(name), "_threads_wakeups", ())):
            has_work = bool(getattr(manager, "pending_work_items", None))
            workers = getattr(manager, "processes", None) or {}
            (busy if has_work else idle).update(map(id, list(workers.values())))
    return busy, idle


def _end_results(ended: set[int]) -> None:
    """Let executors read to the end what their workers were writing: half a result is waited for without end otherwise."""
    for manager in list(getattr(sys.modules.get(_EXECUTORS[0]), "_threads_wakeups", ())):
        workers = list((getattr(manager, "processes", None) or {}).values())
        if workers and all(id(one) in ended for one in workers):
            with contextlib.suppress(Exception):  # it has no such queue
                manager.result_queue._writer.close()


def _all_pools() -> list[Any]:
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


def _abandon(pool: Any, error: Callable[[], BaseException]) -> None:
    """Prevent a pool from starting new workers, and whatever waits for it from waiting without end."""
    pool._state = "TERMINATE"
    for name in ("_worker_handler", "_task_handler"):
        if (handler := getattr(pool, name, None)) is not None:
            handler._state = "TERMINATE"
    pool._terminate.cancel()
    # The threads of the pool may wait for a lock that a worker held, and never end.
    pool.join = partial(_join, list(pool._pool))
    # Not in this thread: a signal handler may have interrupted it where it holds the lock of a result.
    background_thread(partial(_fail_results, pool, error), "tfguard-pool").start()


def _join(workers: list[Any]) -> None:
    for one in workers:
        one.join()


def _fail_results(pool: Any, error: Callable[[], BaseException]) -> None:
    for result in list(pool._cache.values()):
        with shielded("failing the results of an ended pool"):
            if hasattr(result, "_items"):  # of imap
                with result._cond:
                    pool._cache.pop(result._job, None)
                    result._items.append((False, error()))
                    result._length = result._index
                    result._cond.notify_all()
            else:
                if hasattr(result, "_number_left"):  # of map: unfinished pieces of work
                    result._number_left = 1
                result._set(0, (False, error()))
