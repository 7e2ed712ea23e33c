"""Cells of a real kernel that fill its real memory limit: each is stopped, and the kernel goes on."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jupyter_tfguard.collectors.memory_group import memory_groups
from jupyter_tfguard.guard.native import LIBRARY
from tests.kernel.rig import GuardedKernel

if TYPE_CHECKING:
    from tests.guard.conftest import Make

LIMIT_MIB = 600
STOPPED = "HostMemoryLimitReached"


@pytest.fixture(scope="module")
def kernel(limited_kernel: Make) -> GuardedKernel:
    shared = limited_kernel(LIMIT_MIB)
    # Blocks of 1 MB from a slow source: a fast fill is the native sampler's part.
    shared.run(
        "import numpy as np, time\n"
        "def block():\n    time.sleep(0.004)\n    return np.ones(125_000)\n"
    )
    return shared


@pytest.fixture(autouse=True)
def leave_it_empty(kernel: GuardedKernel) -> Iterator[None]:
    yield
    ran = kernel.run("kept = kept2 = None\nblock().sum()")
    assert ran.result == "np.float64(125000.0)", ran


def test_a_loop_is_stopped_and_its_variables_survive(kernel: GuardedKernel) -> None:
    kernel.run("kept = []")
    ran = kernel.run("while True:\n    kept.append(block())")
    assert ran.error == STOPPED, ran
    assert "of 600 MiB (container limit) were left" in ran.traceback
    assert "kept.append(block())" in ran.traceback
    assert re.search(
        r"kept has (\d+) entries, \1 more than before this cell, about \d+ MiB", ran.traceback
    )
    held = kernel.run("len(kept)")
    assert int(held.result or 0) > 300


def test_a_stop_is_an_event_with_its_numbers(kernel: GuardedKernel) -> None:
    kernel.run("kept = []")
    kernel.run("while True:\n    kept.append(block())")
    event = kernel.wait_for_event("memory_stop")[-1]
    assert event["limit_bytes"] == LIMIT_MIB << 20
    assert 0 < event["available_bytes"] < 0.2 * event["limit_bytes"]
    assert event["lines"][0].startswith("tfguard stopped this cell")
    why = kernel.run("%tfguard why").stdout
    assert "the cell was stopped: memory was nearly full. The kernel went on." in why
    assert event["lines"][0] in why
    assert "Last stop: 20" in kernel.run("%tfguard status").stdout


def test_an_array_that_cannot_fit_is_refused(kernel: GuardedKernel) -> None:
    if not LIBRARY.is_file():
        pytest.skip("the native guard was not built")
    ran = kernel.run("np.ones(1 << 28)")
    assert ran.error == "MemoryError", ran
    # The cell imports these Fourier transforms itself.
    ran = kernel.run("np.fft.fft(np.ones(6_000_011))")
    assert ran.error == "MemoryError", ran
    assert "tfguard" in ran.stderr


def test_a_cell_is_not_stopped_because_a_neighbour_fills_the_memory(kernel: GuardedKernel) -> None:
    eat = "held = []\nwhile True: held.append(bytearray(b'x') * (4 << 20)); time.sleep(0.02)"
    program = [sys.executable, "-c", f"import time\ninput()\n{eat}"]
    with subprocess.Popen(program, stdin=subprocess.PIPE) as neighbour:
        Path(memory_groups(kernel.pid)[0].directory, "cgroup.procs").write_text(str(neighbour.pid))
        request = kernel.send(
            "import os\nwhile not os.path.exists('ended'): time.sleep(0.01)\n'lived'"
        )
        neighbour.communicate(b"\n")
        (kernel.folder / "work" / "ended").touch()
        ran = kernel.finish(request)
    assert neighbour.returncode == -signal.SIGKILL
    assert (ran.error, ran.result) == (None, "'lived'"), ran


def test_the_traceback_names_the_cell_as_ipython_does(kernel: GuardedKernel) -> None:
    ran = kernel.run("kept = []\nwhile True:\n    kept.append(block())")
    assert re.search(r"Cell In\[\d+\], line 3, in <module>", ran.traceback), ran
    assert "ipykernel_" not in ran.traceback


def test_a_cell_that_awaits_most_of_the_time_is_stopped(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "import asyncio\nkept = []\n"
        "async def fill():\n    while True:\n        kept.append(np.ones(250_000))\n        await asyncio.sleep(0.02)\n"
        "await asyncio.gather(fill(), asyncio.sleep(600))"
    )
    assert ran.error == STOPPED, ran
    assert "were left" in ran.traceback


def test_the_cell_can_catch_it_and_go_on(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "try:\n    kept = []\n    while True:\n        kept.append(block())\n"
        "except MemoryError as error:\n    kept, name = [], type(error).__name__\n"
        "kept2 = [block() for _ in range(200)]\nname, len(kept2)"
    )
    assert ran.result == f"('{STOPPED}', 200)", ran


def test_a_cell_that_swallows_it_is_stopped_again(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "kept = []\nwhile True:\n    try:\n        kept.append(block())\n    except Exception:\n        pass"
    )
    assert ran.error == "HostMemoryLimitInterrupt", ran


def test_a_thread_that_the_cell_started_is_stopped(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "import threading\nkept = []\n"
        "def fill():\n    while True:\n        kept.append(block())\n"
        "thread = threading.Thread(target=fill, daemon=True)\nthread.start()\nthread.join()"
    )
    assert ran.error == STOPPED, ran
    assert kernel.run("kept.clear(); thread.join(60); thread.is_alive()").result == "False"


def test_a_thread_is_stopped_as_soon_as_it_leaves_a_place_where_an_exception_does_harm(
    kernel: GuardedKernel,
) -> None:
    ran = kernel.run(
        "import threading\nkept = []\n"
        "code = 'def log():\\n    kept.extend(block() for _ in range(8))'\n"
        "exec(compile(code, 'logging/__init__.py', 'exec'))\n"
        "def fill():\n    while not failed:\n        log()\n        time.sleep(0.01)\n"
        "failed = []\nthread = threading.Thread(target=fill, daemon=True)\nthread.start()\nthread.join()"
    )
    assert ran.error == STOPPED, ran
    ended = kernel.run("kept.clear(); thread.join(20); thread.is_alive()")
    kernel.run("failed.append(1); thread.join()")
    assert ended.result == "False", ended


def test_a_pool_of_processes_is_ended(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "import multiprocessing\n"
        "def work(number):\n    return [block() for _ in range(240)] and time.sleep(600)\n"
        "with multiprocessing.get_context('fork').Pool(3) as pool:\n    pool.map(work, range(3))"
    )
    assert ran.error == STOPPED, ran
    assert kernel.run("len(multiprocessing.active_children())").result == "0"


def test_a_full_but_steady_cell_is_not_stopped(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "from jupyter_tfguard.collectors.memory_group import memory_groups\nimport os\n"
        "group, kept = memory_groups(os.getpid())[0], []\n"
        "while group.used_bytes() - group.reclaimable_bytes() < 0.9 * group.limit_bytes():\n"
        "    kept.append(block())\n"
        "for _ in range(100): time.sleep(0.01)\nlen(kept) > 50"
    )
    assert ran.result == "True", ran


def test_pause_and_resume(kernel: GuardedKernel) -> None:
    assert "paused" in kernel.run("%tfguard pause").stdout
    assert kernel.recording().header["guard"]["stop"]["state"] == "paused"
    armed = "import jupyter_tfguard.kernel.current as current\ncurrent.session.stop.guard._cell is not None"
    assert kernel.run(armed).result == "False"
    assert "less than 32 MiB" in kernel.run("%tfguard resume").stdout
    assert kernel.run(armed).result == "True"


def test_the_header_follows_the_memory_group_that_the_kernel_was_moved_to(
    kernel: GuardedKernel,
) -> None:
    stop = kernel.recording().header["guard"]["stop"]
    assert (stop["state"], stop["level"], stop["stop_bytes"]) == ("on", "soft", 32 << 20)


def test_unloading_restores_the_signal(kernel: GuardedKernel) -> None:
    count = "import signal\nsum('MemoryGuard' in str(signal.getsignal(n)) for n in signal.valid_signals())"
    assert kernel.run(count).result == "1"
    kernel.run("%unload_ext tfguard")
    assert kernel.run(count).result == "0"
    assert "guarding this kernel" in kernel.run("%load_ext tfguard").stdout
    assert kernel.run(count).result == "1"
