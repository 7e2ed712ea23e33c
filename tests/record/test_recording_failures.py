"""What fails in a recording costs one file alone, and what it is given never comes back as an exception."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard import shield
from jupyter_tfguard.metrics import Sample
from jupyter_tfguard.record.contents import RECORDS_LIMIT_BYTES, RecordingContents
from jupyter_tfguard.record.recording import Recording
from tests.record.recording_rig import METRICS, RINGS, contents, make, problems, sample

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("name", RINGS)
def test_a_file_that_fails_is_given_up_alone_and_noted_once(
    recording: Recording, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    failing, before = (recording.folder.path / name).stat().st_ino, os.listdir("/proc/self/fd")
    real = os.pwrite

    def refuse(descriptor: int, content: bytes, start: int) -> int:
        if os.fstat(descriptor).st_ino == failing:
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
    assert len(os.listdir("/proc/self/fd")) == len(before)


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


def damaged(change: Callable[[Path], None], recording: Recording) -> RecordingContents:
    recording.event("cell_start")
    recording.sample(sample(1))
    recording.close()
    change(recording.folder.path)
    return contents(recording)


@pytest.mark.parametrize("name", RINGS)
def test_a_damaged_file_is_reported_and_the_others_are_read(
    recording: Recording, name: str
) -> None:
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


def test_a_file_longer_than_any_of_ours_is_not_read_to_its_end(recording: Recording) -> None:
    with (recording.folder.path / "samples.ring").open("ab") as file:
        file.truncate(RECORDS_LIMIT_BYTES * 100)
    found = contents(recording)
    assert found.samples == []
    assert len(found.problems) == 1
