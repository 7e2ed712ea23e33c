"""Whether a process stands still: what excuses it, and that nothing is sent to a process that could die of it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_tfguard.collectors.process_activity import Wait, main_wait, thread_wait
from jupyter_tfguard.record.stacks import HEADER_KEY
from jupyter_tfguard.watch.crash.process_handle import ProcessHandle
from jupyter_tfguard.watch.gpu.gpu_helper import Gpus
from jupyter_tfguard.watch.hang.hang_detector import HangDetector
from jupyter_tfguard.watch.hang.hangs import take_stacks
from jupyter_tfguard.watch.live.live import Live
from jupyter_tfguard.watch.live.shared_group import SharedGroups
from jupyter_tfguard.watch.monitored import Kernel, MonitoredKernel
from jupyter_tfguard.watch.watcher import Watcher
from tests.rigs.waiting import wait_until

from .conftest import Start

STUCK = (
    "print(flush=True); import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()"
)
WAIT = "print(flush=True); import sys; sys.stdin.read()"
HANG_SECONDS = 2.0


class Bench:
    """A watcher with GPUs that are said to be as busy as a test wants."""

    def __init__(self, recordings: Path) -> None:
        self.load: float | None = None
        self.runs_cell = self.is_ending = False
        self.ask_runs_cell = lambda: self.runs_cell
        self.watcher = Watcher(
            recordings,
            lambda crash: None,
            lambda gone: None,
            gpus=self._gpus,
            hang_seconds=HANG_SECONDS,
        )

    def _gpus(self) -> Gpus:
        if self.load is None:
            return Gpus("none", "No NVIDIA GPU found")
        return Gpus("ok", devices=({"utilization_fraction": self.load},))

    def watch(self, pid: int) -> MonitoredKernel:
        kernel = Kernel(
            "k", runs_cell=lambda: self.ask_runs_cell(), is_ending=lambda: self.is_ending
        )
        return self.watcher.watch(pid, kernel)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(tmp_path)
    yield found
    found.watcher.stop()


def stays_quiet(monitored: MonitoredKernel) -> bool:
    ends = time.monotonic() + 2.5 * HANG_SECONDS
    while time.monotonic() < ends:
        if monitored.hang is not None:
            return False
        time.sleep(0.05)
    return True


def test_a_gpu_at_work_excuses_and_an_idle_one_does_not(bench: Bench, start: Start) -> None:
    bench.runs_cell, bench.load = True, 0.4
    monitored = bench.watch(start(STUCK).pid)
    assert stays_quiet(monitored)
    bench.load = 0.0
    wait_until(lambda: monitored.hang is not None)
    assert monitored.hang is not None
    assert (monitored.hang.wait, monitored.hang.stacks) == ("lock", ())
    bench.load = 0.4
    wait_until(lambda: monitored.hang is None)


def test_only_a_running_cell_can_hang(bench: Bench, start: Start) -> None:
    monitored = bench.watch(start(STUCK).pid)
    assert stays_quiet(monitored)
    bench.runs_cell = True
    wait_until(lambda: monitored.hang is not None)


def test_a_wait_that_needs_stacks_to_be_judged_is_not_reported_without_them(
    bench: Bench, start: Start
) -> None:
    bench.runs_cell = True
    assert stays_quiet(bench.watch(start(WAIT).pid))


def test_an_end_that_begins_during_a_look_is_no_sign_that_it_went_on(
    bench: Bench, start: Start
) -> None:
    bench.runs_cell = True
    monitored = bench.watch(start(STUCK).pid)
    wait_until(lambda: monitored.hang is not None)

    def restart_begins() -> bool:
        bench.is_ending = True
        return False

    bench.ask_runs_cell = restart_begins  # it is asked for after the look has begun
    wait_until(lambda: bench.is_ending)
    time.sleep(HANG_SECONDS)
    assert monitored.hang is not None


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, signal.SIGRTMIN + 5, -1, True, None],
    ids=str,
)
def test_a_forged_header_never_gets_a_signal_sent(
    number: object, tmp_path: Path, start: Start
) -> None:
    process = start(WAIT)
    handle = ProcessHandle(process.pid)
    recording = tmp_path / handle.identity.folder_name
    recording.mkdir(mode=0o700)
    (recording / "stacks.txt").write_text("old")
    (recording / "stacks.txt").chmod(0o600)
    header = {HEADER_KEY: {"signal": number, "thread": process.pid}}
    assert take_stacks(handle.identity, recording, header, hangs=True) == []
    assert process.poll() is None
    assert os.listdir(recording) == ["stacks.txt"]
    status = Path(f"/proc/{process.pid}/status").read_text()
    assert "State:\tS" in status
    handle.close()


WITH_SERVICE = """
import os, sys, threading, time
ends = threading.Event()
def serve():
    os.write(1, f"\\n{threading.get_native_id()}\\n".encode())
    until = time.thread_time() + 0.6
    while time.thread_time() < until:
        os.write(null, bytes(10_000))
    sys.stdin.read(1)
null = os.open(os.devnull, os.O_WRONLY)
threading.Thread(target=serve, daemon=True).start()
lock = threading.Lock(); lock.acquire(); lock.acquire()
"""


def test_what_a_thread_of_the_machinery_did_is_no_work_when_it_ends(start: Start) -> None:
    process = start(WITH_SERVICE)
    assert process.stdout is not None
    assert process.stdin is not None
    thread = int(process.stdout.readline())
    monitored = MonitoredKernel(process.pid, Kernel("k", runs_cell=lambda: True), SharedGroups())
    monitored.live = Live(header={HEADER_KEY: {"service_threads": [thread]}})
    detector = HangDetector(monitored)

    def still() -> bool:
        return detector.poll(gpu_works=False) is not None

    wait_until(lambda: thread_wait(process.pid, thread) is Wait.OTHER, "the end of its work")
    wait_until(lambda: main_wait(process.pid) is Wait.LOCK and all(still() for _ in range(3)))
    process.stdin.write(b"x")
    process.stdin.flush()
    wait_until(lambda: not Path(f"/proc/{process.pid}/task/{thread}").exists())
    # There is always time between two looks: of a moment a tick of 0.01 s would be much.
    time.sleep(1.0)
    assert [still() for _ in range(3)] == [True] * 3
    monitored.close()
