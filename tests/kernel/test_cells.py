"""What is written of each cell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kernel.gpu_oom_rig import ON_GPU
from tests.kernel.rig import GuardedKernel
from tests.rigs.waiting import DEADLINE_SECONDS

Make = Callable[..., GuardedKernel]


def pair(kernel: GuardedKernel, code: str, **how: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a cell; the two events it made."""
    count = len([e for e in kernel.recording().events if e["kind"] == "cell_end"])
    kernel.run(code, **how)
    end = kernel.wait_for_event("cell_end", count=count + 1)[-1]
    start = [e for e in kernel.recording().events if e["kind"] == "cell_start"][-1]
    return start, end


def test_a_cell_is_recorded_with_number_id_and_memory(kernel: GuardedKernel) -> None:
    kernel.run("first = 1")
    start, end = pair(kernel, "x = 1\nx", cell_id="3f2a-cell")
    number = int(kernel.run("print(len(In) - 2)").stdout)
    assert start["cell_id"] == "3f2a-cell"
    assert start["head"] == "x = 1\nx"
    assert start["execution_count"] == end["execution_count"] == number
    assert start["rss_bytes"] > 10_000_000
    assert end["rss_bytes"] > 10_000_000
    assert end["ok"] is True
    assert end["error"] is None
    assert 0 <= end["seconds"] < DEADLINE_SECONDS


def test_an_error_is_recorded_by_its_class_only(kernel: GuardedKernel) -> None:
    _, end = pair(kernel, "raise KeyError('a secret text')")
    assert (end["ok"], end["error"]) == (False, "KeyError")
    assert "a secret text" not in str(end)
    _, end = pair(kernel, "this is no python")
    assert (end["ok"], end["error"]) == (False, "SyntaxError")


def test_secrets_are_taken_out_before_the_head_is_cut(kernel: GuardedKernel) -> None:
    start, _ = pair(
        kernel, "api_key = 'sk-abcdefghijklmnopqrstuvwxyz0123456789'\n" + "y = 1\n" * 50
    )
    assert "sk-abc" not in start["head"]
    assert "[redacted]" in start["head"]
    assert len(start["head"]) <= 80
    start, _ = pair(kernel, "z = '" + " " * 60 + "'; token = 'hf_abcdefghijklmnopqrstuvwxyz'")
    assert "hf_" not in start["head"]


def test_a_cell_that_runs_cells_is_one_cell(kernel: GuardedKernel) -> None:
    before = len(kernel.recording().events)
    pair(kernel, "get_ipython().run_cell('inner = 1'); get_ipython().run_cell('1/0');")
    assert len(kernel.recording().events) == before + 2


def test_an_empty_cell_is_none(kernel: GuardedKernel) -> None:
    before = len(kernel.recording().events)
    kernel.run("")
    kernel.run("   ")
    assert len(kernel.recording().events) == before


def test_the_largest_arrays_are_named(kernel: GuardedKernel) -> None:
    _, end = pair(
        kernel,
        "import numpy as np\n"
        "big, small, _hidden, text = np.ones(1000), np.ones(2, 'float32'), np.ones(9000), 'x' * 10000\n"
        "more = {i: i for i in range(100)}",
    )
    names = {one["name"]: one["bytes"] for one in end["arrays"]}
    assert names == {"_hidden": 72_000, "big": 8000, "small": 8}
    assert kernel.recording().header["versions"]["numpy"]
    _, end = pair(kernel, "for i in range(7): globals()[f'a{i}'] = np.ones(10_000 + i)")
    assert [array["name"] for array in end["arrays"]] == ["a6", "a5", "a4", "a3", "a2"]


def test_user_code_is_never_run_by_looking(kernel: GuardedKernel) -> None:
    ran = kernel.run(
        "class Loud:\n"
        "    def __getattr__(self, name): print('asked for', name); raise AttributeError\n"
        "    @property\n"
        "    def __class__(self): print('asked for its class'); return int\n"
        "    nbytes = property(lambda self: print('asked'))\n"
        "class LoudArray(np.ndarray):\n"
        "    nbytes = property(lambda self: print('asked an array'))\n"
        "loud, loud_array = Loud(), np.ones(90_000).view(LoudArray)\n"
    )
    assert ran.text == ""
    end = kernel.wait_for_event("cell_end")[-1]
    assert end["arrays"][0] == {"name": "loud_array", "bytes": 720_000}


def test_samples_are_taken_faster_while_a_cell_runs(kernel: GuardedKernel) -> None:
    kernel.run("import time; time.sleep(1.2)")
    start, end = (e for e in kernel.recording().events[-2:])
    taken = [s for s in kernel.recording().samples if start["t"] <= s.time <= end["t"]]
    assert len(taken) >= 8  # 10 Hz by default; 1 Hz at rest
    assert all(sample.get("process.rss_bytes") for sample in taken)


def test_the_text_of_cells_can_be_left_out(new_kernel: Make, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    settings = tmp_path / "config" / "jupyter_tfguard_config.json"
    settings.write_text('{"TfGuard": {"record_cell_text": false}}')
    start, _ = pair(new_kernel(), "private = 1")
    assert start["head"] is None
    assert start["execution_count"] == 1


# The wait for the page is one that Stop is pressed in.
OOM_AND_STOP = """
import os, signal, time
from jupyter_tfguard.kernel.current import current
class ResourceExhaustedError(Exception): pass
ResourceExhaustedError.__module__ = "tensorflow.python.framework.errors_impl"
def stop(seconds):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(seconds)
current().cells._gpu_oom._wait_read = stop
"""


def test_stop_pressed_while_a_gpu_oom_is_reported_loses_nothing(new_kernel: Make) -> None:
    kernel = new_kernel()
    kernel.run(OOM_AND_STOP)
    before = len(kernel.recording().events)
    ran = kernel.run(f"raise ResourceExhaustedError({ON_GPU!r})")
    assert ran.error == "ResourceExhaustedError"
    assert ran.stderr.count("tfguard: the GPU ran out of memory") == 1
    assert "KeyboardInterrupt" not in ran.text + ran.traceback
    kinds = [event["kind"] for event in kernel.recording().events[before:]]
    assert kinds == ["cell_start", "gpu_oom", "cell_end"]


def test_a_stop_anywhere_after_the_end_of_a_cell_leaves_it_ended(new_kernel: Make) -> None:
    kernel = new_kernel()
    kernel.run(OOM_AND_STOP + "current().cells._gpu_oom.tell = lambda *a: stop(1)")
    before = len(kernel.recording().events)
    ran = kernel.run("1/0")
    assert "KeyboardInterrupt" not in ran.text + ran.traceback
    end = kernel.recording().events[-1]
    assert [event["kind"] for event in kernel.recording().events[before:]] == [
        "cell_start",
        "cell_end",
    ]
    assert (end["ok"], end["error"]) == (False, "ZeroDivisionError")
    kernel.run(OOM_AND_STOP + "current().cells._meter.end = lambda *a: stop(1)")
    end = kernel.recording().events[-1]
    assert (end["kind"], end["ok"]) == ("cell_end", True)


TRIGGER = "get_ipython().events.trigger('{}', None)"
# By thread, the cells that count as running, asked without being one; how many the meter measures.
RUNNING = """
def running():
    from jupyter_tfguard.kernel.current import current
    cells = current().cells
    return [cell.count for cell in cells._open.values()], len(cells._meter._running)
"""


def test_a_cell_that_reports_an_end_itself_runs_on(kernel: GuardedKernel) -> None:
    kernel.run(RUNNING)
    before = len(kernel.recording().events)
    ran = kernel.run(TRIGGER.format("post_run_cell") + "\nprint(len(running()[0]))")
    assert ran.stdout == "1\n"
    kinds = [event["kind"] for event in kernel.recording().events[before:]]
    assert kinds == ["cell_start", "cell_end"]


def test_what_an_earlier_request_left_open_is_dropped(kernel: GuardedKernel) -> None:
    kernel.run(RUNNING)
    # As of a cell whose end never came.
    kernel.run(
        "import threading\n"
        "from jupyter_tfguard.kernel.current import current\n"
        "def lose_the_end():\n"
        "    current().cells._open[threading.get_ident()].source = 'another'\n"
    )
    kernel.run("lose_the_end()")
    before = len(kernel.recording().events)
    ran = kernel.run("counts, measured = running(); print(len(counts), measured)")
    assert ran.stdout == "1 1\n"
    kinds = [event["kind"] for event in kernel.recording().events[before:]]
    assert kinds == ["cell_start", "cell_end"]


def test_a_thread_whose_cell_runs_on_keeps_it(kernel: GuardedKernel) -> None:
    kernel.run(RUNNING)
    kernel.run(
        "import threading\n"
        "begun, go_on = threading.Event(), threading.Event()\n"
        "thread = threading.Thread(target=lambda: get_ipython().run_cell('begun.set(); go_on.wait(60)'))\n"
        "thread.start(); begun.wait(60);"
    )
    ran = kernel.run("counts, measured = running(); print(len(counts), measured)")
    assert ran.stdout == "2 2\n"
    ran = kernel.run("go_on.set(); thread.join(); print(*map(len, running()[:1]))")
    assert ran.stdout.splitlines()[-1] == "1"


def test_a_cell_without_history_has_no_number(kernel: GuardedKernel) -> None:
    start, end = pair(kernel, "without = 1", history=False)
    assert (start["execution_count"], end["execution_count"]) == (None, None)
    assert start["head"] == "without = 1"
    start, _ = pair(kernel, "counted = 1")
    assert start["execution_count"] == int(kernel.run("print(len(In) - 2)").stdout)


OTHER_KERNEL = """
class Other:  # as xeus-python's: no handlers, and get_parent() without a channel
    def __init__(self, kernel):
        self._kernel = kernel
    def get_parent(self):
        return {"header": self._kernel.get_parent("shell")["header"]}
    def __getattr__(self, name):
        if name.endswith("_handlers"):
            raise AttributeError(name)
        return getattr(self._kernel, name)
get_ipython().kernel = Other(get_ipython().kernel)
"""


def test_a_kernel_that_is_not_ipykernel_is_guarded(new_kernel: Make) -> None:
    kernel = new_kernel(before=OTHER_KERNEL)
    start, end = pair(kernel, "x = 1")
    assert (start["head"], end["ok"]) == ("x = 1", True)
    assert "Problem" not in kernel.run("%tfguard status").stdout
