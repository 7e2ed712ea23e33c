"""Which threads a stop ends: those that work. Real threads, and services of the standard library."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.server
import itertools
import logging
import logging.handlers
import queue
import subprocess
import sys
import threading
import time
import urllib.request
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any

import numpy as np
import pytest

from jupyter_tfguard.guard.activity import notebook_function
from jupyter_tfguard.guard.workers import CellThreads, ThreadStop
from tests.rigs.waiting import wait_until

pytestmark = [
    pytest.mark.quick,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


class Stopped(MemoryError):
    """The exception of these tests."""


@pytest.fixture
def notebook() -> Iterator[dict[str, Any]]:
    """Globals of cells, with a function `fill` that fills memory until it is stopped, or until the test has ended."""
    namespace: dict[str, Any] = {"__name__": "notebook", "kept": [], "ended": []}
    exec(
        "import time\n"
        "def blocks():\n"
        "    while not ended:\n"
        "        time.sleep(0.001)\n        yield bytearray(b'x' * (1 << 18))\n"
        "def fill():\n"
        "    for block in blocks(): kept.append(block)\n"
        "    return len(kept)\n",
        namespace,
    )
    yield namespace
    namespace["ended"].append(True)
    namespace["kept"].clear()


@pytest.fixture
def cell(notebook: dict[str, Any]) -> Callable[[], ThreadStop]:
    threads = CellThreads(notebook)
    threads.begin()
    return lambda: ThreadStop(threads.started(), notebook, Stopped)


def look_until(stop: ThreadStop, condition: Callable[[], object]) -> None:
    def look() -> object:
        stop.poll()
        return condition()

    wait_until(look, "the end of what works")


def thread(target: Callable[..., Any], *args: Any) -> threading.Thread:
    made = threading.Thread(target=target, args=args, daemon=True)
    made.start()
    return made


def test_a_thread_of_the_notebook_that_fills_is_stopped(notebook: Any, cell: Any) -> None:
    filling = thread(notebook["fill"])
    stop = cell()
    look_until(stop, lambda: not filling.is_alive())


def test_a_function_in_c_that_fills_is_stopped(cell: Any) -> None:
    kept: list[bytearray] = []
    filling = thread(kept.extend, (bytearray(b"x" * (1 << 18)) for _ in itertools.count()))
    stop = cell()
    look_until(stop, lambda: not filling.is_alive())


def test_a_thread_that_fills_between_waits_is_stopped(notebook: Any, cell: Any) -> None:
    exec(
        "import threading\ndef fill_between():\n"
        "    while not threading.Event().wait(0.001): kept.append(bytearray(b'x' * (1 << 20)))\n",
        notebook,
    )
    filling = thread(notebook["fill_between"])
    stop = cell()
    look_until(stop, lambda: not filling.is_alive())


def test_work_of_pools_is_stopped_and_the_pools_go_on(notebook: Any, cell: Any) -> None:
    with ThreadPoolExecutor(1) as executor, ThreadPool(1) as pool:
        work, more = executor.submit(notebook["fill"]), pool.apply_async(notebook["fill"])
        stop = cell()
        look_until(stop, lambda: work.done() and more.ready())
        with pytest.raises(Stopped):
            work.result()
        with pytest.raises(Stopped):
            more.get()
        assert executor.submit(abs, -1).result() == pool.apply(abs, (-1,)) == 1


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop in a thread of the cell."""
    made = asyncio.new_event_loop()
    running = thread(made.run_forever)
    yield made
    made.call_soon_threadsafe(made.stop)
    running.join()
    made.close()


def test_a_task_of_a_loop_is_stopped_and_the_loop_goes_on(
    notebook: Any, cell: Any, request: Any
) -> None:
    loop = request.getfixturevalue("loop")
    exec(
        "import asyncio\nasync def fill_slowly(pause):\n"
        "    for block in blocks():\n        kept.append(block)\n        await asyncio.sleep(pause)\n"
        "async def one(): return 1\n",
        notebook,
    )
    for pause in (0, 0.005):
        work: Future[None] = asyncio.run_coroutine_threadsafe(notebook["fill_slowly"](pause), loop)
        stop = cell()
        look_until(stop, work.done)
        with pytest.raises((Stopped, CancelledError)):
            work.result()
    assert asyncio.run_coroutine_threadsafe(notebook["one"](), loop).result() == 1


def test_what_only_waits_goes_on(notebook: Any, cell: Any, request: Any) -> None:
    """Services that the cell has started, and threads that wait for the user's next call. Something else fills."""
    loop = request.getfixturevalue("loop")
    records: queue.Queue[Any] = queue.Queue()
    kept = logging.handlers.BufferingHandler(100)
    listener = logging.handlers.QueueListener(records, kept)
    listener.start()

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread(server.serve_forever, 0.01)
    orders: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: list[int] = []
    exec(
        "def consume():\n    while (order := orders.get()): done.append(order)\n"
        "def read():\n    for line in child.stdout: done.append(int(line))\n"
        "def beat():\n    while not ended: time.sleep(0.01)\n",
        notebook,
    )
    echo = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
    with (
        subprocess.Popen(
            [sys.executable, "-c", echo],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        ) as child,
        ThreadPoolExecutor(1) as executor,
        contextlib.closing(server.socket),
    ):
        notebook.update(orders=orders, done=done, child=child)
        waiting = [thread(notebook[name]) for name in ("consume", "read", "beat")]
        assert executor.submit(abs, -1).result() == 1
        filling = thread(notebook["fill"])
        wait_until(lambda: notebook["kept"], "its work")
        stop = cell()
        time.sleep(0.002)
        look_until(stop, lambda: not filling.is_alive())
        for _ in range(20):
            time.sleep(0.005)
            stop.poll()
        orders.put(1)
        assert child.stdin is not None
        child.stdin.write("2\n")
        wait_until(lambda: sorted(done) == [1, 2], "two orders")
        records.put(logging.makeLogRecord({"msg": "three"}))
        wait_until(lambda: [one.msg for one in kept.buffer] == ["three"], "a record")
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/") as answer:
            assert answer.status == 204
        assert executor.submit(abs, -4).result() == 4
        assert asyncio.run_coroutine_threadsafe(asyncio.sleep(0, 5), loop).result() == 5
        assert all(one.is_alive() for one in waiting)
        orders.put(0)
        child.stdin.close()
    server.shutdown()
    listener.stop()


def test_after_the_cell_only_those_that_have_worked_are_stopped(notebook: Any, cell: Any) -> None:
    notebook["go"] = threading.Event()
    exec("def later():\n    go.wait()\n    return fill()", notebook)
    filling = thread(notebook["later"])
    stop = cell()
    stop.poll()
    stop.only_due()
    assert stop.is_over
    notebook["go"].set()
    wait_until(lambda: len(notebook["kept"]) > 3, "its work")
    stop.poll()
    assert filling.is_alive()


def test_a_pool_is_left_alone_if_its_thread_waits_again_when_it_is_to_be_stopped(
    notebook: dict[str, Any],
) -> None:
    """The exception would come with the next order, or with the sign to end: its result, or its exit, would never come."""
    with ThreadPoolExecutor(1, "again") as pool:
        pool.submit(abs, -1).result(60)
        (worker,) = (one for one in threading.enumerate() if one.name.startswith("again"))
        stop = ThreadStop([worker], notebook, Stopped)
        stop._raise_in(worker)
        assert not stop.is_over
        assert pool.submit(abs, -2).result(60) == 2


def test_looking_at_threads_keeps_no_variables_of_theirs(notebook: dict[str, Any]) -> None:
    threads, ended, held = CellThreads(notebook), threading.Event(), queue.SimpleQueue[Any]()
    threads.begin()

    def work() -> None:
        large = np.ones(3)
        held.put(weakref.ref(large))
        ended.wait()

    thread = threading.Thread(target=work)
    thread.start()
    reference = held.get()
    gc.disable()
    try:
        threads.at_work()
        stop = ThreadStop(threads.started(), notebook, Stopped)
        stop.poll()
        ended.set()
        thread.join()
        assert reference() is None
    finally:
        gc.enable()


def test_what_runs_on_a_loop_is_named_by_its_function_and_not_by_what_that_calls(
    notebook: dict[str, Any],
) -> None:
    notebook["ones"] = lambda: notebook_function(sys._getframe(), notebook)
    exec("async def fill_on_loop():\n    return [ones() for _ in range(1)]", notebook)
    assert asyncio.run(notebook["fill_on_loop"]()) == ["fill_on_loop"]
    assert notebook_function(None, notebook) == ""
