"""Work that waits in thread pools is taken back; work of an earlier cell and the pools themselves are not touched."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from multiprocessing.pool import ThreadPool

import pytest

from jupyter_tfguard.guard.queued import QueuedWork

pytestmark = pytest.mark.quick


class Stopped(MemoryError):
    """The exception of these tests."""


@pytest.fixture
def queued() -> QueuedWork:
    return QueuedWork(Stopped)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """The work of these tests waits for it."""
    made = threading.Event()
    yield made
    made.set()


def busy(gate: threading.Event, entered: threading.Event) -> int:
    entered.set()
    gate.wait()
    return 1


def test_futures_that_wait_are_cancelled_and_their_waiters_end(
    queued: QueuedWork, gate: threading.Event
) -> None:
    with ThreadPoolExecutor(1) as executor:
        entered = threading.Event()
        running = executor.submit(busy, gate, entered)
        entered.wait()
        earlier = executor.submit(abs, -2)
        queued.begin()
        waiting = [executor.submit(abs, -3) for _ in range(5)]
        assert queued.take_back() == 5
        assert {one for one in as_completed(waiting, timeout=60) if one.cancelled()} == {*waiting}
        with pytest.raises(CancelledError):
            waiting[0].result()
        assert queued.take_back() == 0
        gate.set()
        assert (running.result(), earlier.result()) == (1, 2)
        assert executor.submit(abs, -4).result() == 4


def test_an_executor_that_is_being_shut_down_ends(
    queued: QueuedWork, gate: threading.Event
) -> None:
    executor, entered = ThreadPoolExecutor(1), threading.Event()
    queued.begin()
    executor.submit(busy, gate, entered)
    entered.wait()
    executor.submit(abs, -1)
    executor.shutdown(wait=False)
    assert queued.take_back() == 1
    gate.set()
    executor.shutdown(wait=True)


def test_results_of_a_thread_pool_fail_and_the_pool_goes_on(
    queued: QueuedWork, gate: threading.Event
) -> None:
    with ThreadPool(1) as pool:
        queued.begin()
        entered = threading.Event()
        running = pool.apply_async(busy, (gate, entered))
        entered.wait()
        mapped = pool.map_async(abs, range(6), chunksize=1)
        items = pool.imap(abs, range(3))
        taken = itertools.accumulate(iter(queued.take_back, None))
        next(count for count in taken if count == 9)  # the pool's own thread hands them over
        with pytest.raises(Stopped):
            mapped.get(60)
        for _ in range(3):
            with pytest.raises(Stopped):
                items.next(60)
        gate.set()
        assert running.get(60) == 1
        assert pool.map(abs, [-5, -6]) == [5, 6]
