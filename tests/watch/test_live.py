"""What a running kernel says of itself, read while it is written, and never trusted."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.metrics import Metric, Unit
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.journal import FILE_LIMIT_BYTES
from jupyter_tfguard.record.recording import Recording
from jupyter_tfguard.watch import live
from jupyter_tfguard.watch.live import Live, LiveReader, training_state

pytestmark = pytest.mark.quick


@pytest.fixture
def recording(tmp_path: Path, data_folder: Path) -> Iterator[Recording]:
    identity = ProcessIdentity.of(os.getpid())
    assert identity is not None
    metric = Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "test")
    found = Recording(tmp_path / "recordings", identity, {"kernel_id": "k"}, [metric])
    yield found
    found.close()


@pytest.fixture
def reader(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveReader]:
    monkeypatch.setattr(live, "_READ_EVERY_SECONDS", 0.0)
    found = LiveReader(recording.folder.path)
    yield found
    found.close()


PROGRESS: dict[str, Any] = {
    "fit_id": 1,
    "what": "fit",
    "active": True,
    "model_name": "sequential",
    "parameter_count": 9835338,
    "optimizer": "Adam",
    "batch_size": 32,
    "epochs": 10,
    "epoch": 3,
    "steps": 313,
    "step": 219,
    "steps_per_second": 4.0,
    "logs": {"loss": 0.412},
    "started": 100.0,
    "ended": None,
    "time": 200.0,
}


def test_a_recording_that_comes_later_is_found(tmp_path: Path, reader: LiveReader) -> None:
    late = LiveReader(tmp_path / "recordings" / "1-2")
    assert late.read() == Live()
    assert not (tmp_path / "recordings" / "1-2").exists()  # reading makes no folder
    assert (reader.read().header or {})["kernel_id"] == "k"


def test_header_progress_and_marks_follow(recording: Recording, reader: LiveReader) -> None:
    recording.event("cell_start", execution_count=12)
    first = reader.read()
    assert [mark["label"] for mark in first.marks] == ["[12]"]
    assert first.training is None
    recording.event("fit_start", fit_id=1, what="fit")
    recording.set_progress(PROGRESS)
    recording.write_header({"guard": {"growth": {"state": "on", "text": "memory growth on"}}})
    second = reader.read()
    # A cell that at once begins to fit has one mark, not two.
    assert [mark["label"] for mark in second.marks] == ["[12] fit"]
    assert second.header is not None
    assert second.header["guard"]["growth"]["state"] == "on"
    assert second.training is not None
    assert second.training["epoch"] == 3


def test_a_journal_that_takes_turns_is_followed(recording: Recording, reader: LiveReader) -> None:
    line = 2000
    for number in range(3 * FILE_LIMIT_BYTES // line):
        recording.event("cell_start", execution_count=number, head="x" * (line - 200))
        if number % 10 == 0:
            reader.read()
    labels = [mark["label"] for mark in reader.read().marks]
    last = 3 * FILE_LIMIT_BYTES // line - 1
    assert labels == [f"[{n}]" for n in range(last - 19, last + 1)]


def test_a_line_written_in_two_halves_is_one_event(
    recording: Recording, reader: LiveReader
) -> None:
    path = recording.folder.path / "journal.0.jsonl"
    line = json.dumps(
        {"n": 1, "t": time.time(), "m": 1.0, "kind": "cell_start", "execution_count": 5}
    )
    with path.open("a") as journal:
        journal.write(line[:20])
        journal.flush()
        assert reader.read().marks == ()
        journal.write(line[20:] + "\n")
        journal.flush()
    assert [mark["label"] for mark in reader.read().marks] == ["[5]"]


def test_old_marks_leave(recording: Recording, reader: LiveReader) -> None:
    path = recording.folder.path / "journal.0.jsonl"
    old = {"n": 1, "t": time.time() - 700, "m": 1.0, "kind": "cell_start", "execution_count": 5}
    path.write_text(json.dumps(old) + "\n")
    assert reader.read().marks == ()


def test_it_is_read_at_most_twice_a_second(recording: Recording) -> None:
    reader = LiveReader(recording.folder.path)
    reader.read()
    recording.event("cell_start", execution_count=1)
    assert reader.read().marks == ()
    reader.close()


def test_seconds_left_count_the_epochs_to_come() -> None:
    training = training_state(PROGRESS)
    assert training is not None
    # 7 epochs of 313 steps, and 95 steps of this one, the running one included.
    assert training["seconds_left"] == pytest.approx((7 * 313 + 95) / 4.0)
    ended = training_state(PROGRESS | {"active": False})
    assert ended is not None
    assert ended["seconds_left"] is None
    unknown = training_state(PROGRESS | {"steps": None})
    assert unknown is not None
    assert unknown["seconds_left"] is None


@pytest.mark.parametrize(
    "forged",
    [
        {"what": "rm -rf"},
        {"what": ["fit"]},
        {"what": "fit", "logs": "no", "epochs": "ten", "steps_per_second": float("nan")},
        {"what": "fit", "model_name": 7, "steps": True, "step": 1e300, "logs": {"loss": "a"}},
        {"what": "fit", "logs": {str(n): 1.0 for n in range(1000)}, "optimizer": "x" * 10_000},
    ],
)
def test_a_forged_progress_gives_only_typed_and_bounded_values(forged: dict[str, Any]) -> None:
    training = training_state(forged)
    text = json.dumps(training, allow_nan=False)
    assert len(text) < 3000


@pytest.mark.parametrize("name", ["header.json", "journal.0.jsonl", "progress.slot"])
@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\x00" * 4000, b"[" * 50_000, b"null\n" * 10])
def test_a_damaged_file_is_no_error(
    recording: Recording, reader: LiveReader, name: str, content: bytes
) -> None:
    (recording.folder.path / name).write_bytes(content)
    found = reader.read()
    assert found.marks == ()
    assert found.training is None


def test_a_link_is_not_followed(recording: Recording, reader: LiveReader, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"kernel_id": "stolen"}')
    header = recording.folder.path / "header.json"
    header.unlink()
    header.symlink_to(secret)
    assert reader.read().header is None
