"""Threads, tasks, pools and processes beside a stopped cell: they end with it, or are named."""

from __future__ import annotations

import sys

import pytest

from jupyter_tfguard.memory.groups import memory_groups
from tests.guard.conftest import LIMIT_MIB, STOPPED
from tests.kernel.rig import GuardedKernel
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.usefixtures("leave_it_empty")


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
        "from jupyter_tfguard.memory.groups import memory_groups\nimport os\n"
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
