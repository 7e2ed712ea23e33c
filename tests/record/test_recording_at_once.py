"""A recording that others reach into while it writes: forked processes, threads, signal handlers."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from types import FrameType

import pytest

from jupyter_tfguard.record.recording import Recording
from tests.record.recording_rig import contents, problems, sample

pytestmark = pytest.mark.quick

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@needs_fork
@pytest.mark.parametrize("at_end", ["close", "remove", "os._exit"])
def test_a_forked_process_changes_nothing(recording: Recording, at_end: str) -> None:
    recording.event("cell_start", execution_count=1)
    before = {file.name: file.read_bytes() for file in recording.folder.path.iterdir()}
    pid = os.fork()
    if not pid:
        signal.alarm(20)
        try:
            recording.event("cell_start", execution_count=2)
            for number in range(1, 100):
                recording.sample(sample(number))
            recording.set_progress({"step": 1})
            recording.write_header({"child": True})
            recording.end("quit")
            if at_end != "os._exit":
                getattr(recording, at_end)()
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    assert before == {file.name: file.read_bytes() for file in recording.folder.path.iterdir()}
    recording.event("cell_start", execution_count=3)
    assert [e["execution_count"] for e in contents(recording).events] == [1, 3]


@needs_fork
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_at_any_moment_of_another_threads_writes_never_hangs(recording: Recording) -> None:
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            recording.sample(sample(number))
            recording.write_header({"number": number})

    thread = threading.Thread(target=write)
    thread.start()
    statuses = []
    try:
        for _ in range(40):
            pid = os.fork()
            if not pid:
                signal.alarm(20)
                recording.event("child")
                recording.sample(sample(1))
                recording.write_header({"child": True})
                recording.close()
                os._exit(0)
            statuses.append(os.waitpid(pid, 0)[1])
    finally:
        stop.set()
        thread.join()
    assert statuses == [0] * 40
    found = contents(recording)
    assert "child" not in found.header
    assert found.events == []
    numbers = [s.sequence for s in found.samples]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))


def test_the_header_is_whole_though_threads_write_it_at_once(recording: Recording) -> None:
    def add(first: int) -> None:
        for number in range(first, first + 50):
            recording.write_header({f"key{number}": "x" * number})
            json.loads((recording.folder.path / "header.json").read_text())

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    failed: list[BaseException] = []

    def caught(first: int) -> None:
        try:
            add(first)
        except BaseException as bad:
            failed.append(bad)

    try:
        threads = [threading.Thread(target=caught, args=(n * 50,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert failed == []
    header = contents(recording).header
    assert all(header[f"key{number}"] == "x" * number for number in range(200))
    assert problems() == []


def test_a_header_that_is_replaced_all_the_time_is_read(recording: Recording) -> None:
    stop = threading.Event()

    def replace() -> None:
        while not stop.is_set():
            recording.write_header({"more": "x" * 100})

    threads = [threading.Thread(target=replace) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        found = [contents(recording).header["kernel_id"] for _ in range(300)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert found == ["k"] * 300


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer signals")
def test_a_signal_handler_may_record_inside_a_record(recording: Recording) -> None:
    by_handler = 0
    is_due = True  # once for each cell at most: the file keeps a limited number of events

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal by_handler, is_due
        if not is_due:
            return
        is_due = False
        recording.event("handler", head="h" * 1500)
        recording.write_header({"handled": by_handler})
        by_handler += 1

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    counts: list[int] = []
    try:
        for number in range(1, 2001):
            is_due = True
            recording.event("cell_start", execution_count=number, head="c" * 1500)
            if number % 100 == 0:
                found = contents(recording)
                cells = [e for e in found.events if e["kind"] == "cell_start"]
                counts += [e["execution_count"] for e in cells[-100:]]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert counts == list(range(1, 2001))
    assert by_handler > 5
    assert problems() == []
