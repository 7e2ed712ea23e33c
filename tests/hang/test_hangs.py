"""Kernels that stand still: told of, their stacks shown, and reported when their user restarts them."""

from __future__ import annotations

import json
import time
import urllib.error
from collections.abc import Callable
from textwrap import indent
from typing import Any

import pytest

from tests.crash.cells import EAT
from tests.crash.settings import MIB, memory_limit
from tests.hang.conftest import HANG_SECONDS, WatchedKernel
from tests.rigs.waiting import wait_until

# name: (cell, what is told of the wait, what the stacks must show)
STANDING_STILL = {
    "lock": (
        "import threading\nlock = threading.Lock()\ndef twice():\n    lock.acquire()\n    lock.acquire()\ntwice()",
        "waiting for a lock, without a timeout",
        "in twice",
    ),
    "native code that holds the GIL": (
        "import ctypes\nmutex = (ctypes.c_char * 64)()\nnative = ctypes.PyDLL(None)\n"
        "def locked_out():\n    native.pthread_mutex_lock(mutex)\n    native.pthread_mutex_lock(mutex)\nlocked_out()",
        "waiting for a lock, without a timeout",
        "in locked_out",
    ),
    "thread that never ends": (
        "import threading\nnever = threading.Event()\nthread = threading.Thread(target=never.wait)\n"
        "thread.start()\nthread.join()",
        "waiting for a lock, without a timeout",
        "in join",
    ),
    "silent connection": (
        "import socket\nours, theirs = socket.socketpair()\nours.recv(1)",
        "waiting for a file, a connection or a child process",
        "line 3 in <module>",
    ),
    "SIGSTOP": (
        # Not before the server was told that the cell runs.
        "import os, signal, time\ntime.sleep(1)\nos.kill(os.getpid(), signal.SIGSTOP)",
        "stopped by a signal (SIGSTOP), not by its own code",
        None,
    ),
}

Make = Callable[[], WatchedKernel]


@pytest.fixture
def hung(make_kernel: Make) -> dict[str, WatchedKernel]:
    """A kernel for each way to stand still, all at once."""
    kernels = {name: make_kernel() for name in STANDING_STILL}
    for name, kernel in kernels.items():
        kernel.start(STANDING_STILL[name][0])
    return kernels


def stacks(kernel: WatchedKernel) -> list[str]:
    """As the button in the panel asks for them."""
    lines: list[str] = kernel.server.ask("POST", f"tfguard/api/kernels/{kernel.id}/stacks", {})[
        "lines"
    ]
    return lines


def has_stacks_soon(kernel: WatchedKernel, shown: str) -> bool:
    """True once the stacks show this; a kernel that has just started is not known to have any."""

    def has_stacks() -> bool:
        try:
            return any(shown in line for line in stacks(kernel))
        except urllib.error.HTTPError as refused:
            with refused:
                if refused.code != 409:
                    raise
            return False

    return wait_until(has_stacks, f"stacks with {shown!r}")


def test_a_kernel_that_hangs_is_shown_and_reported_when_it_is_restarted(
    hung: dict[str, WatchedKernel],
) -> None:
    pids = {}
    for name, kernel in hung.items():
        _, wait, shown = STANDING_STILL[name]
        told, pids[name] = kernel.hang(), kernel.pid
        assert told["text"] == wait, name
        assert told["has_stacks"] is (shown is not None), name
        assert told["since"] <= time.time() - HANG_SECONDS
        if shown is None:
            with pytest.raises(urllib.error.HTTPError) as refused:
                stacks(kernel)
            with refused.value:
                assert refused.value.code == 409
        else:
            assert any(shown in line for line in stacks(kernel)), name
        assert kernel.pid == pids[name]
        assert kernel.entries() == []
    for name, kernel in hung.items():
        kernel.restart()
        report = kernel.report()
        sure = "likely" if name == "silent connection" else "certain"
        assert (report["cause"], report["confidence"]) == ("hang", sure), name
        # Native code that holds the GIL, and SIGSTOP, let the kernel note no request.
        assert ", until you " in report["title"], name
        facts = [fact["text"] for fact in report["evidence"]]
        assert any(STANDING_STILL[name][1] in fact for fact in facts), name
        shown = STANDING_STILL[name][2]
        assert shown is None or any(shown in line for line in report["python_stack"]), name
        assert report["other_findings"] == [], name


def test_threads_of_the_machinery_that_begin_late_do_not_hide_a_hang(
    make_kernel: Make,
) -> None:
    kernel = make_kernel()
    listed = (
        "import os, threading, time, zmq\n"
        "def name(t):\n"
        "    try:\n        return open(f'/proc/self/task/{t}/comm').read()\n"
        "    except OSError:\n        return ''\n"  # it has ended
        "def carriers():\n"
        "    return {t for t in os.listdir('/proc/self/task') if 'ZMQbg' in name(t)}\n"
        "kernels = carriers()\ntheirs = zmq.Context()\nsocket = theirs.socket(zmq.PUB)\n"
        "while carriers() == kernels: time.sleep(0.01)\n"  # a thread gives itself its name
        "def machinery(t):\n"
        "    return type(t).__module__.startswith('ipykernel') or t.name.startswith('tfguard-')\n"
        "python = [t.native_id for t in threading.enumerate() if machinery(t)]\n"
        "own, users = [*python, *map(int, kernels)], [int(t) for t in carriers() - kernels]"
    )
    values = kernel.run(listed, ask={"own": "own", "users": "users"})["user_expressions"]
    own, users = (set(json.loads(values[n]["data"]["text/plain"])) for n in ("own", "users"))
    assert len(own) > 6
    assert users
    recording = next((kernel.server.data / "recordings").glob(f"{kernel.pid}-*"))

    def found() -> set[int]:
        header = json.loads((recording / "header.json").read_text())
        return set(header["stacks"]["service_threads"])

    wait_until(lambda: own <= found(), "the threads of the machinery in the header")
    assert not users & found()


# name: a cell that is busy for longer than it takes to be told of
NOT_STANDING_STILL = {
    "input": "input('how many epochs? ')",
    "getpass": "import getpass\ngetpass.getpass()",
    "debugger": (
        "from IPython.core.debugger import set_trace\n"
        "def stop():\n    set_trace()\n    return 1\nstop()"
    ),
    "sleep": "import time\ntime.sleep(60)",
    "await": "import asyncio\nawait asyncio.sleep(60)",
    "wait with a time limit": "import threading\nthreading.Event().wait(60)",
    "sleeping child": "import subprocess\nsubprocess.run(['sleep', '60'])",
    "shell command": "!sleep 60",
    "pipe of another program": "import subprocess\nsubprocess.run('sleep 60 | cat', shell=True)",
    "working child": (
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', "
        "'import time\\nend = time.time() + 60\\nwhile time.time() < end: sum(range(10**4)); time.sleep(0.05)'])"
    ),
    "polling": "import time\nwhile True:\n    time.sleep(1)",
    "writing in a thread": (
        "import os, tempfile, threading, time\nfile = tempfile.TemporaryFile()\ndef write():\n"
        "    while True:\n        os.pwrite(file.fileno(), bytes(100_000), 0)\n        time.sleep(0.3)\n"
        "thread = threading.Thread(target=write, daemon=True)\nthread.start()\nthread.join()"
    ),
    "network in a thread": (
        "import os, socket, threading, time\nours, theirs = socket.socketpair()\n"
        "if not os.fork():\n    ours.close()\n    try:\n        while theirs.send(b'x'):\n            time.sleep(0.02)\n"
        "    finally:\n        os._exit(0)\ntheirs.close()\n"
        "def receive():\n    while ours.recv(100):\n        pass\n"
        "thread = threading.Thread(target=receive, daemon=True)\nthread.start()\nthread.join()"
    ),
    "computing": "while True:\n    sum(range(10**5))",  # last, and ended first: it takes a core
}


def test_a_kernel_that_works_or_waits_on_purpose_is_not_reported(make_kernel: Make) -> None:
    kernels = {name: make_kernel() for name in NOT_STANDING_STILL}
    for name, kernel in kernels.items():
        kernel.start(NOT_STANDING_STILL[name])
    for kernel in kernels.values():
        kernel.wait_until_busy()
    ends = time.monotonic() + 2.5 * HANG_SECONDS
    told: dict[str, Any] = {}
    while time.monotonic() < ends:
        for name, kernel in kernels.items():
            state = kernel.state()
            assert kernel.execution_state() == "busy", name
            if state["hang"] is not None:
                told[name] = state["hang"]
        time.sleep(0.3)
    assert told == {}
    for kernel in reversed(kernels.values()):
        kernel.restart_and_forget()
    assert [kernel.entries() for kernel in kernels.values()] == [[]] * len(kernels)


def test_a_kernel_that_goes_on_is_reported_no_more(make_kernel: Make) -> None:
    kernel = make_kernel()
    kernel.start("lock = __import__('threading').Lock()\nlock.acquire()\nlock.acquire()")
    kernel.hang()
    kernel.server.ask("POST", f"api/kernels/{kernel.id}/interrupt", {})
    wait_until(lambda: kernel.state()["hang"] is None, "the end of the hang")
    kernel.restart_and_forget()
    assert kernel.entries() == []


def test_the_stacks_of_a_kernel_at_work_do_not_stop_it(make_kernel: Make) -> None:
    kernel = make_kernel()
    kernel.run("counted = 0")
    kernel.start(
        "import time\ndef count():\n    global counted\n    while True:\n"
        "        time.sleep(0.01)\n        counted += 1\ncount()"
    )
    assert has_stacks_soon(kernel, "in count")
    for _ in range(3):
        assert any("in count" in line for line in stacks(kernel))
    kernel.server.ask("POST", f"api/kernels/{kernel.id}/interrupt", {})
    wait_until(lambda: kernel.execution_state() == "idle", "the end of the cell")
    # What was sent while a cell failed is not run; how long "while" lasts is the kernel's to say.
    wait_until(lambda: kernel.run("assert counted > 100")["status"] == "ok", "a cell that runs")
    assert kernel.entries() == []


def test_a_fit_in_a_child_that_was_forked_after_tensorflow_is_named(make_kernel: Make) -> None:
    kernel = make_kernel()
    prepared = kernel.run(
        "import multiprocessing, numpy\nimport tensorflow as tf\n"
        "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.compile('sgd', 'mse')\n"
        "x = numpy.ones((64, 4), 'float32')\nmodel.fit(x, x[:, :1], verbose=0)",
        timeout=120,
    )
    assert prepared["status"] == "ok"
    kernel.start(
        "worker = multiprocessing.get_context('fork').Process("
        "target=model.fit, args=(x, x[:, :1]), kwargs={'verbose': 0})\nworker.start()\nworker.join()"
    )
    kernel.hang()
    kernel.restart()
    report = kernel.report()
    assert (report["cause"], report["confidence"]) == ("fork_or_thread_deadlock", "likely")
    assert any("after TensorFlow was imported" in fact["text"] for fact in report["evidence"])
    assert [other["cause"] for other in report["other_findings"]] == ["hang"]
    assert "spawn" in (report["advice"][0]["code"] or "")


def test_a_pool_that_waits_for_a_killed_worker_is_named_while_it_lasts(make_kernel: Make) -> None:
    kernel = make_kernel()
    with memory_limit(500 * MIB) as limit:
        limit.add(kernel.pid)
        paused = kernel.run(
            "import multiprocessing\nget_ipython().run_line_magic('tfguard', 'pause')\n"
            f"def fill(_):\n    open('/proc/self/oom_score_adj', 'w').write('500')\n{indent(EAT, '    ')}"
        )
        assert paused["status"] == "ok"
        kernel.start("multiprocessing.get_context('fork').Pool(1).map(fill, [1])")

        def facts() -> list[str] | None:
            found: list[str] | None = kernel.hang()["worker_killed"]
            return found

        named = wait_until(facts, "the killed worker in the notice")
        assert any("OOM kill" in fact or "memory ran out" in fact for fact in named)
        kernel.restart()
        wait_until(lambda: len(kernel.entries()) == 2, "both reports")
        assert {entry["cause"] for entry in kernel.entries()} == {"child_oom_killed", "hang"}
        kernel.close()
