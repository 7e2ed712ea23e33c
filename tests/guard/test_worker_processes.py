"""A pool whose workers the guard ended keeps nobody waiting."""

from __future__ import annotations

import multiprocessing
import os
import struct
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest

from jupyter_tfguard.guard.worker_processes import Children
from tests.rigs.waiting import wait_until

_LARGE = 1 << 50


class Stopped(MemoryError):
    """The exception of these tests."""


def test_results_of_an_ended_pool_fail_and_it_can_be_joined() -> None:
    children = Children(Stopped)
    pool = multiprocessing.get_context("spawn").Pool(1)
    children.begin()
    waits = [600] * 4
    results = [pool.apply_async(time.sleep, (600,)), pool.map_async(time.sleep, waits, 1)]
    iterators = [pool.imap(time.sleep, waits), pool.imap_unordered(time.sleep, waits)]
    assert children.end(_LARGE)
    for one in results:
        with pytest.raises(Stopped):
            one.get(timeout=60)
    for each in iterators:
        with pytest.raises(Stopped):
            each.next(timeout=60)
        with pytest.raises(StopIteration):
            each.next(timeout=60)
    pool.close()
    joins = threading.Thread(target=pool.join, daemon=True)
    joins.start()
    wait_until(lambda: not joins.is_alive(), "the pool's end")
    assert not children.end(_LARGE)


def test_an_idle_pool_is_left_alone() -> None:
    children = Children(Stopped)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        children.begin()
        assert not children.end(_LARGE)
        assert pool.map(abs, [-1, -2]) == [1, 2]


def test_half_a_result_of_an_executor_is_not_waited_for() -> None:
    children = Children(Stopped)
    executor = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    children.begin()
    work = executor.submit(time.sleep, 600)
    queue: Any = executor._result_queue
    os.write(queue._writer.fileno(), struct.pack("!i", 1000) + b"half")
    children.end(_LARGE)
    with pytest.raises(BrokenProcessPool):
        work.result(timeout=60)
    executor.shutdown()
