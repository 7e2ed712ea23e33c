"""A recording as a whole: what is written is read, a failing file costs that file alone, a forked process writes nothing."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from jupyter_tfguard import shield
from jupyter_tfguard.errors import RecordTooNew
from jupyter_tfguard.metrics import Metric, Sample, Unit
from jupyter_tfguard.record.contents import RECORDS_LIMIT_BYTES, RecordingContents, read_recording
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording

pytestmark = pytest.mark.quick

METRICS = tuple(
    Metric(f"process.number_{n}_bytes", f"Number {n}", Unit.BYTES, "test") for n in range(18)
)
RINGS = ("samples.ring", "seconds.ring", "minutes.ring", "events.ring", "progress.ring")


@pytest.fixture
def recording(tmp_path: Path, data_folder: Path) -> Iterator[Recording]:
    shield._noted.clear()
    found = make(tmp_path)
    yield found
    found.close()


def make(tmp_path: Path) -> Recording:
    identity = ProcessIdentity.of(os.getpid())
    assert identity is not None
    return Recording(tmp_path / "recordings", identity, {"kernel_id": "k"}, METRICS)


def sample(number: int, hertz: float = 10.0, wall: float | None = None) -> Sample:
    moment = 1000.0 + number / hertz
    values = {metric.name: float(number * (n + 1)) for n, metric in enumerate(METRICS[:-1])}
    return Sample(number, moment, 1e9 + moment if wall is None else wall, values)


def contents(recording: Recording) -> RecordingContents:
    return read_recording(recording.folder.path)


def problems() -> list[str]:
    return [entry["place"] for entry in shield.read_problems()]


def test_an_empty_recording_is_read_without_a_problem(recording: Recording) -> None:
    found = contents(recording)
    assert found.header["format"] == [2, 0]
    assert found.problems == []
    assert (found.samples, found.seconds, found.minutes, found.events) == ([], [], [], [])
    assert found.progress is None


def test_three_resolutions_of_the_same_samples(recording: Recording) -> None:
    count = 3000
    for number in range(count):
        recording.sample(sample(number + 1))
    found = contents(recording)
    name = METRICS[0].name
    assert [s.sequence for s in found.samples] == list(range(count - 1199, count + 1))
    assert found.samples[-1] == sample(count)
    assert [s.sequence for s in found.seconds] == list(range(1, 301))
    tenth = found.seconds[9]  # samples 90 to 99, at 1009.0 to 1009.9
    assert (tenth.minimum[name], tenth.maximum[name], tenth.last[name]) == (90, 99, 99)
    assert tenth.time == 1e9 + 1009.9
    # The minutes of 1000 to 1019.9, 1020 to 1079.9 and so on; the last one has not ended.
    assert [(m.minimum[name], m.maximum[name]) for m in found.minutes] == [
        (1, 199),
        (200, 799),
        (800, 1399),
        (1400, 1999),
        (2000, 2599),
    ]
    assert METRICS[-1].name not in found.minutes[0].maximum
    assert found.samples[0].time <= found.seconds[-1].time  # nothing between them is missing


def test_every_event_finished_is_there_also_after_going_round(recording: Recording) -> None:
    for number in range(1, 3001):
        recording.event("cell_start", execution_count=number, head="x" * (number * 7 % 2500))
        if number % 500 == 0:
            counts = [event["execution_count"] for event in contents(recording).events]
            assert counts == list(range(number - len(counts) + 1, number + 1))
            # 512 records: at least 170 events of at most 3 records each, one of which may be without its beginning.
            assert len(counts) >= min(number, 512 // 3 - 1)


def test_the_disk_it_takes_is_what_the_specification_says(recording: Recording) -> None:
    begun = sum(file.stat().st_size for file in recording.folder.path.glob("*.ring"))
    assert begun == 874_496
    for number in range(1, 10_082 * 60 + 1, 1):
        if number > 3700 and number % 60 > 1:  # a whole hour, then what a week of minutes needs
            continue
        recording.sample(sample(number, hertz=1.0))
    found = contents(recording)
    assert len(found.seconds) == 3600
    assert len(found.minutes) == 10_080
    sizes = {name: (recording.folder.path / name).stat().st_size for name in RINGS}
    assert sizes == {
        "samples.ring": 315_392,
        "seconds.ring": 929_792,
        "minutes.ring": 2_588_672,
        "events.ring": 532_480,
        "progress.ring": 10_240,
    }
    assert sum(sizes.values()) == 4_376_576


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("name", RINGS)
def test_a_file_that_fails_is_given_up_alone_and_noted_once(
    recording: Recording, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    failing = recording._writers[name]._descriptor
    real = os.pwrite

    def refuse(descriptor: int, content: bytes, start: int) -> int:
        if descriptor == failing:
            raise OSError(code, os.strerror(code))
        return real(descriptor, content, start)

    monkeypatch.setattr(os, "pwrite", refuse)
    for number in range(1, 200):
        recording.sample(sample(number, hertz=1.0))
        recording.event("cell_start", execution_count=number)
        recording.set_progress({"step": number})
    found = contents(recording)
    there = {
        "samples.ring": len(found.samples),
        "seconds.ring": len(found.seconds),
        "minutes.ring": len(found.minutes),
        "events.ring": len(found.events),
        "progress.ring": int(found.progress is not None),
    }
    assert there.pop(name) == 0
    assert all(there.values())
    assert problems() == [f"recording: {name}"]
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(failing)


def test_a_file_that_cannot_grow_costs_that_file_alone(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for number in range(1, 200):
        recording.sample(sample(number, hertz=1.0))
    monkeypatch.setattr(os, "posix_fallocate", full)
    for number in range(200, 400):
        recording.sample(sample(number, hertz=1.0))
    found = contents(recording)
    assert len(found.seconds) == 256  # the first 64 KiB
    assert len(found.samples) == 399
    assert len(found.minutes) == 7
    assert problems() == ["recording: seconds.ring"]


def test_a_file_that_cannot_be_made_leaves_the_others_and_takes_no_room(
    tmp_path: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shield._noted.clear()
    real = os.posix_fallocate

    def full(descriptor: int, start: int, length: int) -> None:
        if length == 512 * 1024:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor, start, length)

    monkeypatch.setattr(os, "posix_fallocate", full)
    recording = make(tmp_path)
    recording.event("cell_start")
    recording.sample(sample(1))
    found = contents(recording)
    assert found.events == []
    assert len(found.samples) == 1
    assert found.problems == []
    assert not (recording.folder.path / "events.ring").exists()
    assert problems() == ["recording: events.ring"]
    recording.close()


class Hostile:
    """What a user may put where we take a text of it."""

    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


def test_nothing_that_is_given_to_it_comes_back_as_an_exception(recording: Recording) -> None:
    circular: list[Any] = []
    circular.append(circular)
    for strange in (Hostile(), circular, {(1, 2): 3}, object, "\udfff", b"x", float("nan")):
        recording.event("cell_start", strange=strange)
        recording.set_progress({"strange": strange})
        recording.write_header({"strange": strange})
        recording.sample(Sample(1, 1.0, 1.0, {METRICS[0].name: strange}))  # type: ignore[dict-item]
        recording.header.pop("strange")
    recording.set_progress({"long": "x" * 5000})
    recording.event("real")
    recording.set_progress({"step": 7})
    recording.write_header({"real": 1})
    recording.sample(sample(2))
    found = contents(recording)
    assert found.events[-1]["kind"] == "real"
    assert found.progress == {"step": 7}
    assert found.header["real"] == 1
    assert found.samples[-1] == sample(2)


def test_a_closed_recording_takes_everything_and_writes_nothing(recording: Recording) -> None:
    recording.close()
    recording.event("cell_start")
    recording.sample(sample(1))
    recording.set_progress({})
    found = contents(recording)
    assert (found.events, found.samples, found.progress) == ([], [], None)


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


def test_a_header_written_by_a_signal_handler_inside_a_header_is_whole(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_whole = recording.folder.write_whole
    depth = 0

    def interrupted(name: str, content: bytes) -> None:
        nonlocal depth
        depth += 1
        if depth == 1:
            recording.write_header({"by_handler": 1})
        write_whole(name, content)

    with monkeypatch.context() as patch:  # undo() would take the data folder's place away too
        patch.setattr(recording.folder, "write_whole", interrupted)
        recording.write_header({"by_cell": 1})
    header = contents(recording).header
    assert header["by_cell"] == header["by_handler"] == 1
    recording.write_header({"later": 1})
    assert contents(recording).header["later"] == 1
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

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal by_handler
        recording.event("handler", head="h" * 1500)
        recording.write_header({"handled": by_handler})
        by_handler += 1

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    counts: list[int] = []
    try:
        for number in range(1, 2001):
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


def damaged(change: Callable[[Path], None], recording: Recording) -> RecordingContents:
    recording.event("cell_start")
    recording.sample(sample(1))
    recording.close()
    change(recording.folder.path)
    return contents(recording)


@pytest.mark.parametrize("name", RINGS)
def test_a_damaged_file_is_told_of_and_the_others_are_read(recording: Recording, name: str) -> None:
    found = damaged(
        lambda folder: (folder / name).write_bytes(b"\xff" * 20_000) and None, recording
    )
    assert found.problems == [f"The file {name} has no intact header."]
    assert (len(found.samples), len(found.events)) == (
        name != "samples.ring",
        name != "events.ring",
    )


def test_a_file_that_was_never_begun_is_no_problem(recording: Recording) -> None:
    def change(folder: Path) -> None:
        (folder / "events.ring").write_bytes(b"")
        (folder / "samples.ring").unlink()

    found = damaged(change, recording)
    assert (found.problems, found.events, found.samples) == ([], [], [])


def test_a_newer_major_of_the_recording_is_refused(recording: Recording) -> None:
    recording.write_header({"format": [3, 0]})
    with pytest.raises(RecordTooNew, match="format 3, this tfguard reads up to format 2"):
        contents(recording)
    recording.write_header({"format": [2, 7]})
    assert contents(recording).header["format"] == [2, 7]


def test_a_file_longer_than_any_of_ours_is_not_read_to_its_end(recording: Recording) -> None:
    with (recording.folder.path / "samples.ring").open("ab") as file:
        file.truncate(RECORDS_LIMIT_BYTES * 100)
    found = contents(recording)
    assert found.samples == []
    assert len(found.problems) == 1
