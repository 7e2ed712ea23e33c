"""Who is to blame when memory fills: the running cell, or a thread of an earlier one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from jupyter_tfguard.guard.blame import Blame, who_fills
from jupyter_tfguard.guard.workers import CellThreads
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.quick


@pytest.fixture
def notebook() -> Iterator[dict[str, Any]]:
    """Globals of cells, with functions that go on until the test has ended."""
    namespace: dict[str, Any] = {"__name__": "notebook", "ended": threading.Event(), "ran": set()}
    exec(
        "import mmap, threading, time\n"
        "def fill():\n"
        "    while not ended.is_set():\n"
        "        mmap.mmap(-1, 1 << 22).write(b'x' * (1 << 22))\n"
        "        ran.add(threading.get_ident())\n"
        "def beat():\n"
        "    while not ended.is_set():\n"
        "        ran.add(threading.get_ident())\n"
        "        time.sleep(0.005)\n"
        "def wait():\n    ran.add(threading.get_ident())\n    ended.wait()\n",
        namespace,
    )
    yield namespace
    namespace["ended"].set()


def judge(
    notebook: dict[str, Any], start: Callable[[], object], cell: Callable[[], object]
) -> Blame:
    """Judge from another thread while the main thread runs a cell. `start`: starts what is older than the cell."""
    start()
    threads, found = CellThreads(notebook), []
    threads.begin()

    def look() -> None:
        wait_until(lambda: len(notebook["ran"]) == 2, "both")
        found.append(who_fills(threads, notebook, seconds=0.1, is_awaiting=False))
        notebook["ended"].set()

    threading.Thread(target=look, name="tfguard-test").start()
    cell()
    return found[0]


@pytest.fixture
def judged(notebook: dict[str, Any]) -> Callable[[str, str], Blame]:
    """Judges by the names of functions."""

    def by_name(earlier: str, cell: str) -> Blame:
        notebook["ended"].clear()
        notebook["ran"].clear()
        thread = threading.Thread(target=notebook[earlier], name=earlier, daemon=True)
        blame = judge(notebook, thread.start, notebook[cell])
        thread.join()
        return blame

    return by_name


@pytest.mark.parametrize("cell", ["wait", "beat"])
def test_a_thread_of_an_earlier_cell_fills_while_the_cell_waits(judged: Any, cell: Any) -> None:
    blame = judged("fill", cell)
    assert ([one.name for one in blame.earlier], blame.is_cell) == (["fill"], False)


def test_the_cell_fills_beside_a_thread_that_only_beats(judged: Any) -> None:
    blame = judged("beat", "fill")
    assert (blame.earlier, blame.is_cell) == ([], True)


def test_both_fill(judged: Any) -> None:
    # On a busy machine the cell may not run while it is watched. The next trip asks again.
    assert any(judged("fill", "fill").is_cell for _ in range(3))


def test_a_pool_of_an_earlier_cell_works_for_the_cell_that_waits_for_it(
    notebook: dict[str, Any],
) -> None:
    with ThreadPoolExecutor(1, "worker") as pool:

        def cell() -> None:
            notebook["ran"].add(0)
            pool.submit(notebook["fill"]).result()

        blame = judge(notebook, pool.submit(abs, 1).result, cell)
    assert (blame.earlier, blame.is_cell) == ([], True)
    assert [one.name for one in blame.of_cell if one.name.startswith("worker")] == ["worker_0"]
