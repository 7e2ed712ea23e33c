"""The GPU helper with a stand-in for NVIDIA's library: well, absent, hanging, crashing, and not to be ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_tfguard import shield
from jupyter_tfguard.shield import read_problems
from jupyter_tfguard.watch.crash.process_handle import is_running
from jupyter_tfguard.watch.gpu import gpu_helper
from jupyter_tfguard.watch.gpu.gpu_helper import GpuHelper, Gpus
from tests.rigs.nvml.library import environ
from tests.rigs.nvml.scenario import GIB, Scenario, eight_gpus, one_gpu
from tests.rigs.waiting import DEADLINE_SECONDS, wait_until

Choose = Callable[..., Path]


@pytest.fixture
def choose(standin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Choose:
    """Shows a scenario, in which `calls` go wrong, to the processes started from now on."""

    def show(scenario: Scenario, *calls: str) -> Path:
        scenario.calls += calls
        path = scenario.save(tmp_path / "scenario.txt")
        for name, value in environ(standin, path).items():
            monkeypatch.setenv(name, value)
        return path

    return show


@pytest.fixture(autouse=True)
def nothing_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A problem is written down once in a process, and all tests are one."""
    monkeypatch.setattr(shield, "_noted", {})


@pytest.fixture
def helper(data_folder: Path) -> Iterator[GpuHelper]:
    found = GpuHelper(restart_seconds=0.2, silence_seconds=DEADLINE_SECONDS)
    yield found
    found.stop()


def settle(helper: GpuHelper, state: str, seconds: float = 30.0) -> Gpus:
    def reached() -> bool:
        helper.want()
        return helper.read().state == state

    wait_until(reached)
    return helper.read()


def process(helper: GpuHelper) -> subprocess.Popen[bytes]:
    assert helper._run is not None
    assert helper._run.process is not None
    return helper._run.process


def test_what_the_process_reads_is_known_with_its_time(helper: GpuHelper, choose: Choose) -> None:
    choose(eight_gpus())
    before = time.time()
    assert helper.read() == Gpus("starting")
    found = settle(helper, "ok")
    assert [d["nvml_index"] for d in found.devices] == list(range(8))
    assert found.devices[0]["memory_total_bytes"] == 80 * GIB
    assert found.time is not None
    assert before <= found.time <= time.time()


def test_each_line_is_handed_on_in_the_thread_that_reads(data_folder: Path, choose: Choose) -> None:
    choose(one_gpu())
    seen: list[tuple[Gpus, str]] = []

    def take(gpus: Gpus) -> None:
        seen.append((gpus, threading.current_thread().name))
        raise RuntimeError("whoever takes it may fail")

    helper = GpuHelper(on_read=take)
    try:
        settle(helper, "ok")
        wait_until(lambda: len(seen) >= 2)
        assert {name for _, name in seen} == {"tfguard-gpus"}
        assert helper.read().state == "ok"
        assert [p["place"] for p in read_problems()] == ["reading the output of the GPU reader"]
    finally:
        helper.stop()


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("nvmlDeviceGetMemoryInfo_v2 hang after 1", "does not answer"),
        ("nvmlInitWithFlags hang", "does not answer"),
        ("nvmlSystemGetProcessName crash", "crashed"),
    ],
)
def test_a_library_that_hangs_or_crashes_is_given_up_and_tried_again(
    data_folder: Path, choose: Choose, call: str, reason: str
) -> None:
    choose(one_gpu(), call)
    helper = GpuHelper(restart_seconds=0.1, silence_seconds=1.5, start_seconds=4.0)
    try:
        found = settle(helper, "unavailable")
        assert reason in str(found.reason)
        assert found.devices == ()
        assert any(reason in p["what"] for p in read_problems())
        choose(one_gpu())
        settle(helper, "ok")
    finally:
        helper.stop()


def test_a_hang_where_events_are_waited_for_keeps_no_figure_back(
    helper: GpuHelper, choose: Choose
) -> None:
    choose(one_gpu(), "nvmlDeviceRegisterEvents hang")
    first = settle(helper, "ok")
    wait_until(lambda: helper.want() or (helper.read().time or 0) > (first.time or 0) + 3)
    assert helper.read().state == "ok"


class TestEvents:
    def test_they_are_kept_when_the_process_is_started_again(
        self, helper: GpuHelper, choose: Choose, tmp_path: Path
    ) -> None:
        scenario = eight_gpus()
        calls = scenario.record = tmp_path / "calls"
        path = choose(scenario)
        settle(helper, "ok")
        wait_until(lambda: "nvmlEventSetWait_v2" in calls.read_text())
        scenario.xid(5, 79)
        scenario.save(path)
        wait_until(lambda: 79 in [e["xid"] for e in helper.read().events])
        known = helper.read().events
        assert known[-1]["nvml_index"] == 5
        assert known[-1]["gpu_uuid"] == scenario.cards[5].uuid
        process(helper).kill()
        assert settle(helper, "unavailable").events == known
        assert settle(helper, "ok").events == known

    def test_the_newest_hundred_of_ten_minutes_are_kept(
        self, helper: GpuHelper, data_folder: Path
    ) -> None:
        run = helper._run = gpu_helper._HelperRun()
        now = time.time()

        def take(events: list[dict[str, float]]) -> list[float]:
            line = {"state": "ok", "reason": None, "time": now, "devices": [], "events": events}
            helper._take(run, json.dumps(line).encode())
            return [event["xid"] for event in helper.read().events]

        assert take([{"time": now - 900, "xid": 1}, {"time": now, "xid": 2}]) == [2]
        assert take([]) == [2]
        assert take([{"time": now, "xid": xid} for xid in range(100, 220)]) == [*range(120, 220)]
        helper._run = None


def test_a_machine_without_cards_says_so(helper: GpuHelper, choose: Choose) -> None:
    choose(Scenario())
    assert settle(helper, "none") == Gpus("none", "No NVIDIA GPU found")
    helper.want()
    assert helper._run is None


def test_a_driver_that_is_not_loaded_is_said_and_asked_again(
    helper: GpuHelper, choose: Choose
) -> None:
    choose(one_gpu(), "nvmlInitWithFlags fail 9")
    assert "Driver Not Loaded" in str(settle(helper, "unavailable").reason)
    choose(one_gpu())  # as after modprobe
    settle(helper, "ok")
    assert read_problems() == []


def test_a_missing_library_means_no_gpu(
    helper: GpuHelper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "libnvidia-ml.so.1"
    broken.write_text("not a library")  # found first, so that a real one is not loaded
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert settle(helper, "none") == Gpus("none", "No NVIDIA GPU found")


def test_stopping_ends_the_process(helper: GpuHelper, choose: Choose) -> None:
    choose(one_gpu())
    settle(helper, "ok")
    begun = process(helper)
    helper.stop()
    assert begun.poll() is not None


def test_the_helper_ends_with_its_server(choose: Choose) -> None:
    choose(one_gpu())
    server = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys, os, time\n"
            "from jupyter_tfguard.watch.gpu.gpu_helper import GpuHelper\n"
            "helper = GpuHelper(); helper.want()\n"
            "while helper.read().state != 'ok': time.sleep(0.05)\n"
            "print(helper._run.process.pid, flush=True); time.sleep(60)",
        ],
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    pid = int(server.stdout.readline())
    server.kill()
    server.communicate()
    wait_until(lambda: not is_running(pid))


def test_a_notebook_folder_s_files_are_not_imported(
    helper: GpuHelper, choose: Choose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(one_gpu())
    (tmp_path / "json.py").write_text("raise SystemExit('this is the notebook folder')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert os.getcwd() == str(tmp_path)
    settle(helper, "ok")


# A traced process that dies is told to its tracer first; until that has taken note, its parent waits in vain: as with a
# process that hangs in the driver and does not die of SIGKILL. Source: ptrace(2), PTRACE_SEIZE.
HOLD = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
done = libc.ptrace(0x4206, int(sys.argv[1]), None, None)
print("held" if done == 0 else os.strerror(ctypes.get_errno()), flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ptrace as Linux has it")
def test_while_a_process_cannot_be_ended_no_other_is_started(
    helper: GpuHelper, choose: Choose
) -> None:
    choose(one_gpu(), "nvmlDeviceGetMemoryInfo_v2 hang after 2")
    settle(helper, "ok")
    helper._silence_seconds = 1.5
    stuck = process(helper)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(stuck.pid)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        try:
            told = holder.stdout.readline().strip()
            if told != "held":
                pytest.skip(f"no process can be traced here: {told}")
            settle(helper, "unavailable")
            assert "does not answer" in str(helper.read().reason)
            wait_until(lambda: helper.want() or "cannot be killed" in str(helper.read().reason))
            for _ in range(10):
                helper.want()
                time.sleep(0.1)
            assert helper._run is None
            assert stuck.poll() is None
        finally:
            holder.kill()
    helper._silence_seconds = DEADLINE_SECONDS
    settle(helper, "ok")  # it is gone at last, and another one is tried
    assert process(helper).pid != stuck.pid
    assert stuck.poll() is not None
