"""Takes back the work that a stopped cell has handed to thread pools and that no thread has begun.

Without that, each thread would take the next piece of work after its own was stopped, and memory would go on filling. The
pools stay usable. Locks of the pools are taken, so this must not run in a signal handler.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from queue import Empty
from typing import Any

from ..shield import shielded
from .worker_processes import thread_pools


class QueuedWork:
    """The work that waits in thread pools.

    Args:
        error: Makes the exception for results of a ``ThreadPool``; futures of an executor are cancelled.
    """

    def __init__(self, error: Callable[[], BaseException]) -> None:
        self._error = error
        self._older: dict[int, int] = {}

    def begin(self) -> None:
        """Note what waits at the start of a cell; takes a microsecond if there is no pool."""
        self._older = {id(queue): size for queue, _ in self._queues() if (size := queue.qsize())}

    def take_back(self, *, earlier: bool = False) -> int:
        """Cancel what waits now; returns the number of pieces of work.

        Args:
            earlier: Whether to cancel also what waited before the cell.
        """
        count = 0
        with shielded("taking back queued work"):
            for queue, cancel in list(self._queues()):
                waiting = _emptied(queue)
                # The oldest is the next to run. Some of what was there may have run meanwhile.
                older = 0 if earlier else min(self._older.get(id(queue), 0), len(waiting))
                self._older[id(queue)] = older
                for place, item in enumerate(waiting):
                    if place < older or item is None:  # None: the pool is being shut down
                        queue.put(item)
                    else:
                        cancel(item)
                        count += 1
        return count

    def _fail(self, pool: Any, item: Any) -> None:
        job, place = item[:2]
        with contextlib.suppress(KeyError):
            pool._cache[job]._set(place, (False, self._error()))

    def _queues(self) -> Iterator[tuple[Any, Callable[[Any], object]]]:
        """The queues of the pools, each with the function that cancels a piece of its work."""
        if (executors := sys.modules.get("concurrent.futures.thread")) is not None:
            queues = {id(one): one for one in list(executors._threads_queues.values())}
            yield from ((one, _cancel) for one in queues.values())
        for pool in thread_pools():
            yield pool._inqueue, partial(self._fail, pool)


def _emptied(queue: Any) -> list[Any]:
    found: list[Any] = []
    with contextlib.suppress(Empty):
        while True:
            found.append(queue.get_nowait())
    return found


def _cancel(item: Any) -> None:
    if item.future.cancel():
        item.future.set_running_or_notify_cancel()
