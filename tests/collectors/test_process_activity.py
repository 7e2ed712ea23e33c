"""What the main thread of a process waits for, seen on real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from jupyter_tfguard.collectors.process_activity import (
    Wait,
    catches,
    is_fork,
    main_wait,
    process_activity,
    runs_program,
)
from tests.rigs.waiting import wait_until

WAITS = {
    Wait.SLEEP: "import time; time.sleep(60)",
    Wait.LOCK: "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
    Wait.LOCK_WITH_TIMEOUT: "import threading; threading.Event().wait(60)",
    Wait.STOPPED: "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    Wait.OTHER: "import os; os.read(os.pipe()[0], 1)",
    Wait.RUNNING: "while True: pass",
}

Start = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts Python processes, and ends them after the test."""
    made: list[subprocess.Popen[bytes]] = []

    def begin(code: str) -> subprocess.Popen[bytes]:
        made.append(subprocess.Popen([sys.executable, "-c", code], start_new_session=True))
        return made[-1]

    yield begin
    for process in made:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc of Linux")
@pytest.mark.parametrize("wait", WAITS, ids=lambda wait: wait.name)
def test_the_wait_of_a_main_thread_is_reported(wait: Wait, start: Start) -> None:
    process = start(WAITS[wait])
    # While the interpreter starts it waits for other things too.
    wait_until(lambda: all(main_wait(process.pid) is wait for _ in range(3)))


@pytest.mark.skipif(sys.platform != "linux", reason="/proc of Linux")
def test_a_process_that_has_ended_reports_nothing(start: Start) -> None:
    process = start("pass")
    process.wait()
    assert main_wait(process.pid) is Wait.UNKNOWN
    assert not catches(process.pid, signal.SIGUSR1)
    assert not is_fork(process.pid, os.getpid())
    assert not runs_program(process.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc of Linux")
def test_work_of_process_and_child_is_counted_and_that_of_its_own_threads_left_out(
    start: Start,
) -> None:
    process = start(
        "import os, threading, time\n"
        "def work():\n    while True: sum(range(1000))\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(60)"
    )
    tasks = f"/proc/{process.pid}/task"
    wait_until(lambda: len(os.listdir(tasks)) == 2)
    worker = next(int(name) for name in os.listdir(tasks) if int(name) != process.pid)
    still, all_of_it = (
        process_activity(process.pid, (), (worker,)),
        process_activity(process.pid, (), ()),
    )
    parent = process_activity(os.getpid(), (process.pid,), ())
    wait_until(
        lambda: process_activity(process.pid, (), ()).cpu_seconds > all_of_it.cpu_seconds + 0.1
    )
    wait_until(
        lambda: (
            process_activity(os.getpid(), (process.pid,), ()).cpu_seconds > parent.cpu_seconds + 0.1
        )
    )
    assert process_activity(process.pid, (), (worker,)).cpu_seconds < still.cpu_seconds + 0.05


WRITER = """\
import threading, time
def write():
    with open("/dev/null", "wb", buffering=0) as file:
        while True:
            file.write(bytes(1000))
            time.sleep(0.001)
threading.Thread(target=write, daemon=True).start()
lock = threading.Lock()
lock.acquire()
lock.acquire()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc of Linux")
def test_bytes_of_a_thread_that_is_left_out_are_not_counted(start: Start) -> None:
    process = start(WRITER)
    wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) > 1)
    [worker] = (t for t in map(int, os.listdir(f"/proc/{process.pid}/task")) if t != process.pid)
    before, everything = (
        process_activity(process.pid, (), (worker,)),
        process_activity(process.pid, (), ()),
    )
    wait_until(
        lambda: process_activity(process.pid, (), ()).moved_bytes > everything.moved_bytes + 20_000
    )
    now = process_activity(process.pid, (), (worker,))
    assert now.threads == before.threads == {process.pid}
    assert now.moved_bytes <= before.moved_bytes + 4096


@pytest.mark.skipif(sys.platform != "linux", reason="/proc of Linux")
def test_a_fork_is_distinguished_from_another_program(start: Start) -> None:
    process = start(
        "import os, subprocess\n"
        "if os.fork():\n    subprocess.run(['sleep', '60'])\nelse:\n    os.read(os.pipe()[0], 1)"
    )

    def children() -> list[int]:
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as listed:
            return [int(pid) for pid in listed.read().split()]

    wait_until(lambda: len(children()) == 2)
    wait_until(lambda: sorted(is_fork(child, process.pid) for child in children()) == [False, True])


@pytest.mark.skipif(sys.platform != "linux", reason="/proc of Linux")
def test_a_caught_signal_is_seen() -> None:
    old = signal.signal(signal.SIGUSR2, lambda *_: None)
    try:
        assert catches(os.getpid(), signal.SIGUSR2)
    finally:
        signal.signal(signal.SIGUSR2, old)
    assert not catches(os.getpid(), signal.SIGUSR2)
