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
from tests.rigs.waiting import wait_until

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


def test_a_thread_that_the_cell_started_is_stopped(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "import threading\nkept = []\n"
        "def fill():\n    while True:\n        kept.append(block())\n"
        "thread = threading.Thread(target=fill, daemon=True)\nthread.start()\nthread.join()"
    )
    assert ran.error == STOPPED, ran
    assert kernel.run("kept.clear(); thread.join(60); thread.is_alive()").result == "False"


def test_a_timer_that_starts_itself_again_ends_with_the_cell(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "import threading\nkept = []\n"
        "def fill():\n    again = threading.Timer(0.1, fill)\n    again.daemon = True\n    again.start()\n"
        "    kept.append(np.ones(2_000_000))\n"
        "fill()\nwhile True: time.sleep(1)"
    )
    assert ran.error == STOPPED, ran
    running = "any(isinstance(one, threading.Timer) for one in threading.enumerate())"
    ends = f"for _ in range(100):\n    if not {running}: break\n    time.sleep(0.05)\n"
    assert kernel.run(f"kept.clear()\n{ends}{running}").result == "False"


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


def test_services_that_the_cell_started_outlive_the_stop(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "import asyncio, threading\nget_ipython().run_cell_magic('bash', '', 'echo one')\n"
        "loop = asyncio.new_event_loop()\nthreading.Thread(target=loop.run_forever, daemon=True).start()\n"
        "kept = []\nwhile True:\n    kept.append(block())"
    )
    assert ran.error == STOPPED, ran
    after = kernel.run(
        "kept.clear()\nget_ipython().run_cell_magic('bash', '', 'echo two')\n"
        "asyncio.run_coroutine_threadsafe(asyncio.sleep(0, 'three'), loop).result(60)"
    )
    assert (after.stdout, after.result) == ("two\n", "'three'"), after


def test_a_thread_of_an_earlier_cell_is_stopped_and_the_cell_that_waits_for_it_is_not(
    kernel: GuardedKernel,
) -> None:
    kernel.run(
        "import threading\nkept, go = [], threading.Event()\n"
        "def fill():\n    go.wait()\n    while True:\n        kept.append(block())\n"
        "thread = threading.Thread(target=fill, name='filler', daemon=True)\nthread.start()"
    )
    ran = kernel.run("go.set()\nthread.join()\n'goes on'")
    assert (ran.error, ran.result) == (None, "'goes on'"), ran
    assert "tfguard stopped what an earlier cell had left running (filler)" in ran.stderr
    assert kernel.run("kept.clear()\nthread.is_alive()").result == "False"


def test_work_that_waits_in_a_pool_is_taken_back_and_the_pool_goes_on(
    kernel: GuardedKernel,
) -> None:
    ran = kernel.run(
        "import concurrent.futures\npool = concurrent.futures.ThreadPoolExecutor(2)\n"
        "def work(number):\n    return [block() for _ in range(150)]\n"
        "orders = [pool.submit(work, number) for number in range(20)]\n"
        "kept = [order.result() for order in orders]"
    )
    # That of the main thread, or that of the order that it waits for.
    assert ran.error in (STOPPED, "ThreadStopped"), ran
    after = kernel.run(
        "ended = len(concurrent.futures.wait(orders, 60).done), sum(one.cancelled() for one in orders) > 5\n"
        "orders = None\nended, pool.submit(abs, -1).result(60)"
    )
    assert after.result == "((20, True), 1)", after


def test_tasks_of_a_stopped_cell_end_and_their_memory_is_free(kernel: GuardedKernel) -> None:
    fill = (
        "import asyncio\nasync def fill(pause=0.005):\n    kept = []\n    while True:\n"
        "        try:\n            kept.append(np.ones(125_000))\n            await asyncio.sleep(pause)\n"
        "        except errors: pass\n"
    )
    left = (
        "from jupyter_tfguard.collectors.memory_group import memory_groups\nimport os\n"
        "await asyncio.sleep(0.2)\n"
        "group = memory_groups(os.getpid())[0]\ngroup.used_bytes() - group.reclaimable_bytes() < 200 << 20"
    )
    groups = "async with asyncio.TaskGroup() as group:\n    tasks = [group.create_task(fill()) for _ in range(8)]"
    for errors, runs in {
        "()": "await asyncio.gather(*[fill() for _ in range(8)])",
        "(ZeroDivisionError,)": "await asyncio.gather(*[fill() for _ in range(8)], return_exceptions=True)",
        "Exception": "await asyncio.gather(*[fill() for _ in range(8)])",
        "": groups
        if sys.version_info >= (3, 11)
        else "await asyncio.gather(*[fill() for _ in range(8)])",
    }.items():
        kernel.run(f"errors = {errors or '()'}\n{fill}")
        ran = kernel.run(runs)
        if runs == groups:  # Python prints it, not IPython
            assert ran.stderr.count("tfguard stopped this cell") == 1, ran
        ended = kernel.run(left)
        assert ended.result == "True", (runs, ended)


def test_an_await_ends_although_only_tasks_and_callbacks_fill(kernel: GuardedKernel) -> None:
    for runs in (
        "tasks = [asyncio.create_task(fill()) for _ in range(3)]",
        "loop = asyncio.get_running_loop()\nstep()",
    ):
        ran = kernel.run(
            "import asyncio\nkept = []\n"
            "async def fill():\n    while True:\n        step(again=False)\n        await asyncio.sleep(0.005)\n"
            "def step(again=True):\n    kept.append(np.ones(125_000))\n    if again: loop.call_later(0.002, step)\n"
            f"{runs}\nawait asyncio.sleep(600)"
        )
        assert ran.error == "CancelledError", ran
        assert "tfguard stopped this cell" in ran.traceback
        after = kernel.run(
            "count = len(kept)\nawait asyncio.sleep(0.1)\ngrew, kept = len(kept) - count, []\ngrew"
        )
        assert after.result == "0", after


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


def test_what_goes_on_after_the_stop_is_named(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "import threading\nended = threading.Event()\n"
        "def beat():\n    while not ended.is_set(): time.sleep(0.01)\n"
        "thread = threading.Thread(target=beat, name='beat', daemon=True)\nthread.start()\n"
        "kept = []\nwhile True:\n    kept.append(block())"
    )
    assert "1 thread (beat) that this cell started still runs" in ran.traceback, ran
    assert "as they were" not in ran.traceback
    assert kernel.run("kept, alive = [], thread.is_alive()\nended.set()\nalive").result == "True"


def newest_stop(kernel: GuardedKernel) -> str:
    """Its first line."""
    stops = [one for one in kernel.recording().events if one["kind"] == "memory_stop"]
    return str(stops[-1]["lines"][0]) if stops else ""


def test_a_callback_of_a_widget_is_stopped(kernel: GuardedKernel) -> None:
    made = kernel.run(
        "from comm import create_comm\nkept = []\ncomm = create_comm(target_name='test')\n"
        "def fill(message):\n    while True: kept.append(block())\n"
        "comm.on_msg(fill)\ncomm.comm_id"
    )
    content = {"comm_id": (made.result or "").strip("'"), "data": {}}
    kernel.client.shell_channel.send(kernel.client.session.msg("comm_msg", content))
    wait_until(lambda: "stopped this callback before" in newest_stop(kernel), "the stop")
    assert int(kernel.run("len(kept)").result or 0) > 300


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("filler", "threading.Thread(target=fill, name='filler', daemon=True).start()"),
        ("fill_on_loop", "task = asyncio.create_task(fill_on_loop())"),
    ],
)
def test_what_a_cell_left_running_is_stopped_after_it(
    kernel: GuardedKernel, name: str, runs: str
) -> None:
    kernel.run(
        "import asyncio, threading\nkept = []\n"
        "def fill():\n    while True: kept.append(block())\n"
        "async def fill_on_loop():\n    while True:\n        kept.append(np.ones(125_000))\n        await asyncio.sleep(0.002)\n"
        f"{runs}"
    )
    group, full = memory_groups(kernel.pid)[0], 0.85 * (LIMIT_MIB << 20)
    wait_until(lambda: (group.used_bytes() or 0) > full, "full memory")

    def stop() -> str:
        kernel.run("len(kept)")
        return newest_stop(kernel)

    wait_until(lambda: f"had left running ({name})" in stop(), "the stop")


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


def test_a_pool_of_processes_is_ended(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "import multiprocessing\n"
        "def work(number):\n    return [block() for _ in range(240)] and time.sleep(600)\n"
        "with multiprocessing.get_context('fork').Pool(3) as pool:\n    pool.map(work, range(3))"
    )
    assert ran.error == STOPPED, ran
    assert kernel.run("len(multiprocessing.active_children())").result == "0"


def test_a_pool_of_an_earlier_cell_can_be_closed_and_joined(kernel: GuardedKernel) -> None:
    kernel.run(
        "import multiprocessing\nkept = []\n"
        "def large(number):\n    return np.ones(1_000_000)\n"
        "pool = multiprocessing.get_context('fork').Pool(2)"
    )
    ran = kernel.run(
        "try:\n    for one in pool.imap_unordered(large, range(1000)): kept.append(one)\n"
        "finally:\n    pool.close()\n    pool.join()"
    )
    assert ran.error == STOPPED, ran
    assert "A process pool of an earlier cell has ended" in ran.traceback
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
    count = "import signal\nsum('tfguard.guard' in str(signal.getsignal(n)) for n in signal.valid_signals())"
    assert kernel.run(count).result == "1"
    kernel.run("%unload_ext tfguard")
    assert kernel.run(count).result == "0"
    assert "guarding this kernel" in kernel.run("%load_ext tfguard").stdout
    assert kernel.run(count).result == "1"
