"""What a running kernel says of itself, read while it is written, and never trusted."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.record.recording import EVENTS_CAPACITY, Recording
from jupyter_tfguard.watch.live import live
from jupyter_tfguard.watch.live.live import Live, LiveReader, training_state

pytestmark = pytest.mark.quick


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


@pytest.mark.parametrize("every", [10, 10_000])
def test_a_journal_that_goes_round_is_followed(
    recording: Recording, reader: LiveReader, every: int
) -> None:
    last = 3 * EVENTS_CAPACITY
    for number in range(1, last + 1):
        recording.event("cell_start", execution_count=number, head="x" * (number % 1200))
        if number % every == 0:
            reader.read()
    labels = [mark["label"] for mark in reader.read().marks]
    assert labels == [f"[{n}]" for n in range(last - 19, last + 1)]


def test_old_marks_leave(
    recording: Recording, reader: LiveReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.event("cell_start", execution_count=1)
    assert len(reader.read().marks) == 1
    now = time.time()
    monkeypatch.setattr(live.time, "time", lambda: now + 700)
    assert reader.read().marks == ()


def test_progress_stays_while_nothing_new_is_written(
    recording: Recording, reader: LiveReader
) -> None:
    for step in (1, 2, 3):
        recording.set_progress(PROGRESS | {"step": step})
        training = reader.read().training
        assert training is not None
        assert training["step"] == step
        assert reader.read().training == training


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


def test_a_training_loop_has_steps_and_no_model() -> None:
    unknown = dict.fromkeys(("model_name", "batch_size", "epochs", "epoch", "steps"))
    training = training_state(PROGRESS | {"what": "loop", "logs": {}, "step": 974} | unknown)
    assert training is not None
    assert (training["kind"], training["model_name"], training["step"]) == ("loop", None, 974)
    assert (training["steps_per_second"], training["seconds_left"]) == (4.0, None)


def test_a_forged_progress_gives_only_typed_and_bounded_values() -> None:
    assert training_state({"what": ["fit"]}) is None
    logs = {str(n): 1.0 for n in range(1000)}
    wrong = {
        "model_name": 7,
        "steps": True,
        "step": 1e300,
        "epochs": "ten",
        "optimizer": "x" * 9000,
    }
    forged = {"what": "fit", "logs": logs, "steps_per_second": float("nan"), **wrong}
    assert len(json.dumps(training_state(forged), allow_nan=False)) < 3000


@pytest.mark.parametrize("name", ["header.json", "events.ring", "progress.ring"])
@pytest.mark.parametrize("content", [b"", b"\xff\x00" * 4000, b"[" * 50_000])
def test_a_damaged_file_is_no_error(
    recording: Recording, reader: LiveReader, name: str, content: bytes
) -> None:
    (recording.folder.path / name).write_bytes(content)
    found = reader.read()
    assert found.marks == ()
    assert found.training is None
