"""Cells of a real kernel that fill its real memory limit: each is stopped, and the kernel goes on."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_tfguard.guard.native import LIBRARY
from jupyter_tfguard.memory.groups import memory_groups
from tests.guard.conftest import LIMIT_MIB, STOPPED
from tests.kernel.rig import GuardedKernel

pytestmark = pytest.mark.usefixtures("leave_it_empty")


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


def test_what_earlier_cells_hold_is_named_if_a_request_is_refused(kernel: GuardedKernel) -> None:
    kernel.run("kept = []")
    kernel.run("while True:\n    kept.append(block())")
    ran = kernel.run("large = np.ones(20_000_000)")
    assert ran.error == "MemoryError", ran
    assert re.search(
        r"tfguard refused 153 MiB.*\. kept has \d+ entries, about \d+ MiB\.", ran.stderr
    )
    assert "Load less" not in ran.stderr


def test_a_stop_is_an_event_with_its_numbers(kernel: GuardedKernel) -> None:
    kernel.run("kept = []")
    kernel.run("while True:\n    kept.append(block())")
    event = kernel.wait_for_event("memory_stop")[-1]
    assert event["limit_bytes"] == LIMIT_MIB << 20
    assert 0 < event["available_bytes"] < 0.2 * event["limit_bytes"]
    assert event["lines"][0].startswith("tfguard stopped this cell")
    why = kernel.run("%tfguard why").stdout
    assert "]: stopped, because memory was nearly full. The kernel went on." in why
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


def test_a_second_attempt_while_the_first_is_still_kept_is_stopped_too(
    kernel: GuardedKernel,
) -> None:
    ran = kernel.run(
        "def fill():\n    kept = []\n    while True:\n        kept.append(block())\n"
        "try:\n    fill()\nexcept MemoryError:\n    fill()"
    )
    assert ran.error == STOPPED, ran
    assert kernel.run("len([block() for _ in range(200)])").result == "200"


def test_a_cell_that_swallows_it_is_stopped_again(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "kept = []\nwhile True:\n    try:\n        kept.append(block())\n    except Exception:\n        pass"
    )
    assert ran.error == "HostMemoryLimitInterrupt", ran


@pytest.mark.parametrize("large", ["bytearray(b'x' * (3 << 20))", "np.ones(1 << 19)"])
def test_a_cell_that_ignores_every_refused_array_is_stopped(
    kernel: GuardedKernel, large: str
) -> None:
    ran = kernel.run(
        f"kept = []\nwhile True:\n    try:\n        kept.append({large})\n    except Exception:\n        pass"
    )
    # The first one if it is raised between two attempts.
    assert ran.error in (STOPPED, "HostMemoryLimitInterrupt"), ran


def test_the_error_of_a_stop_keeps_nothing_that_its_functions_close_over(
    kernel: GuardedKernel,
) -> None:
    ran = kernel.run(
        "import weakref\nclass Large: pass\n"
        "def retried(function):\n"
        "    def call(large):\n"
        "        def inner():\n            kept = []\n            while True: kept.append((block(), large) and block())\n"
        "        return inner()\n"
        "    return call\n"
        "large = Large()\nalive = weakref.ref(large)\n"
        "try: 1 / 0\nexcept ZeroDivisionError: retried(None)(globals().pop('large'))"
    )
    assert ran.error == STOPPED, ran
    assert kernel.run("alive() is None").result == "True"


def test_memory_that_was_freed_is_given_back_before_a_child_shares_it(
    kernel: GuardedKernel,
) -> None:
    # With what two children fill, more than the limit.
    count = (
        int(0.8 * (LIMIT_MIB << 20) - (memory_groups(kernel.pid)[0].used_bytes() or 0)) // 800_000
    )
    ran = kernel.run(
        "import multiprocessing as mp\n"
        "def fill(n):\n    return len([block() for _ in range(60)])\n"
        "np.ones(125_000)\n"  # from now on malloc takes arrays of this size from its heap
        f"kept = [np.ones(100_000) for _ in range({count})]\n"
        "del kept[:-1]\n"
        "with mp.get_context('fork').Pool(2) as pool:\n    done = pool.map(fill, range(2))\n"
        "done"
    )
    assert ran.result == "[60, 60]", ran


def test_a_full_but_steady_cell_is_not_stopped(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "from jupyter_tfguard.memory.groups import memory_groups\nimport os\n"
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
    count = "import signal\nsum('tfguard.guard' in str(signal.getsignal(n)) for n in signal.valid_signals())"
    assert kernel.run(count).result == "1"
    kernel.run("%unload_ext tfguard")
    assert kernel.run(count).result == "0"
    assert "guarding this kernel" in kernel.run("%load_ext tfguard").stdout
    assert kernel.run(count).result == "1"
