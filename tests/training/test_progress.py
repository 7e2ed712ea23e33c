"""Progress of a fit: on disk before a slow step, cheap for fast ones, and never too long for its place."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from jupyter_tfguard.record.events import Event
from jupyter_tfguard.training import progress as progress_module
from jupyter_tfguard.training import watch as watch_module
from jupyter_tfguard.training.checkpoints import CheckpointWatch
from jupyter_tfguard.training.progress import FitProgress, ProgressBoard, plain_logs
from jupyter_tfguard.training.watch import FitWatch, make_callback_class

pytestmark = pytest.mark.quick


class Clock:
    """A monotonic clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1.7e9 + self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(watch_module, "monotonic", moved.monotonic)
    monkeypatch.setattr(progress_module, "time", moved)
    return moved


class Base:
    """What is needed of ``keras.callbacks.Callback``."""

    params: Mapping[str, Any] = {}


class Model:
    """Built after its first step, as a model without an input shape is."""

    built = False
    weights: tuple[Any, ...] = (np.ones((3, 4)), np.ones(4))


def make() -> tuple[FitWatch, list[dict[str, Any]], list[dict[str, Any]], ProgressBoard]:
    written: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    board = ProgressBoard(written.append)
    progress = FitProgress(1, "fit", model_name="m", batch_size=8)

    def emit(event: Event) -> None:
        events.append({"kind": event.kind} | event.fields())

    watch = FitWatch(progress, board, emit, Model(), CheckpointWatch([], time.time()))
    board.begin(progress)
    return watch, written, events, board


def step_begins(watch: FitWatch, batch: int) -> None:
    make_callback_class(Base)(watch).on_train_batch_begin(batch)


def test_a_slow_step_is_on_disk_before_it_starts(clock: Clock) -> None:
    watch, written, _, _ = make()
    watch.begins({"steps": 100, "epochs": 2})
    watch.epoch_begins(0)
    for batch in range(3):
        clock.now += 5.0
        step_begins(watch, batch)
        assert written[-1]["step"] == batch + 1
        assert written[-1]["epoch"] == 1
    assert written[-1]["steps"] == 100


def test_steps_of_some_ten_milliseconds_are_on_disk_before_they_start(clock: Clock) -> None:
    watch, written, _, _ = make()
    watch.epoch_begins(0)
    for batch in range(20):
        clock.now += 0.06
        step_begins(watch, batch)
        assert written[-1]["step"] == batch + 1


def test_quick_steps_are_written_at_most_twenty_times_a_second(clock: Clock) -> None:
    watch, written, _, board = make()
    watch.epoch_begins(0)
    for batch in range(2000):
        clock.now += 0.001
        step_begins(watch, batch)
        board.flush()
        assert (written[-1]["step"] or 0) >= batch + 1 - 51
    assert len(written) <= 42


def test_a_pause_shows_the_last_step(clock: Clock) -> None:
    watch, written, _, board = make()
    watch.epoch_begins(0)
    for batch in range(10):
        clock.now += 0.001
        step_begins(watch, batch)
    clock.now += 0.1
    board.flush()
    assert written[-1]["step"] == 10
    count = len(written)
    clock.now += 0.1
    board.flush()  # nothing new
    assert len(written) == count


def test_steps_per_second_are_those_of_the_last_seconds(clock: Clock) -> None:
    watch, written, _, _ = make()
    watch.epoch_begins(0)
    step_begins(watch, 0)
    assert written[-1]["steps_per_second"] is None
    clock.now += 30.0  # the first step compiles
    step_begins(watch, 1)
    for batch in range(2, 100):
        clock.now += 0.1
        step_begins(watch, batch)
    assert written[-1]["steps_per_second"] == pytest.approx(10.0, rel=0.05)
    for batch in range(100, 200):
        clock.now += 0.5
        step_begins(watch, batch)
    assert written[-1]["steps_per_second"] == pytest.approx(2.0, rel=0.05)


def test_steps_per_second_go_on_from_epoch_to_epoch(clock: Clock) -> None:
    watch, written, _, board = make()
    for epoch in range(4):
        watch.epoch_begins(epoch)
        for batch in range(6):
            step_begins(watch, batch)
            board.flush()
            clock.now += 0.1
        if epoch:
            assert written[-1]["steps_per_second"] == pytest.approx(10.0, rel=0.05)
        watch.epoch_ends(epoch, {"loss": 1.0})


def test_what_is_known_only_later_is_reported_later(clock: Clock) -> None:
    watch, _, events, _ = make()
    watch.begins({"steps": None, "epochs": 1, "verbose": 0})
    watch.epoch_begins(0)
    step_begins(watch, 0)
    assert [e["kind"] for e in events] == ["fit_ready"]
    assert events[0] == {"kind": "fit_ready", "fit_id": 1, "epochs": 1}
    Model.built = True
    try:
        clock.now += 0.06
        step_begins(watch, 1)
    finally:
        Model.built = False
    assert events[-1] == {"kind": "fit_ready", "fit_id": 1, "parameter_count": 16}
    watch.epoch_ends(0, {"loss": np.float32(0.5), "lr": 0.1})
    assert events[-2] == {"kind": "fit_ready", "fit_id": 1, "steps": 2}
    assert events[-1]["kind"] == "epoch_end"
    assert events[-1]["logs"] == {"loss": 0.5, "lr": 0.1}
    assert events[-1]["epoch"] == 1


def test_the_end_is_written_once_and_nothing_after_it(clock: Clock) -> None:
    watch, written, events, board = make()
    watch.ends(KeyboardInterrupt())
    assert written[-1]["active"] is False
    assert written[-1]["ended"] is not None
    assert events[-1] == {"kind": "fit_end", "fit_id": 1, "ok": False, "error": "KeyboardInterrupt"}
    count = len(written)
    board.flush()
    board.close()
    board.begin(FitProgress(2, "fit"))
    assert len(written) == count


def test_logs_become_floats_and_the_rest_is_left_out() -> None:
    found = plain_logs(
        {"loss": np.float32(1.5), "n": 3, "confusion": np.ones((2, 2)), "tensor": object()}
    )
    assert found == {"loss": 1.5, "n": 3.0}
    assert plain_logs(None) == {}
    assert len(plain_logs({str(n): n for n in range(100)})) == 12


def test_what_a_short_run_learns_is_reported_at_its_end(clock: Clock) -> None:
    watch, _, events, _ = make()
    watch.begins({"steps": 2, "epochs": 1})
    watch.epoch_begins(0)
    step_begins(watch, 0)
    Model.built = True
    try:
        step_begins(watch, 1)
        watch.ends(None)
    finally:
        Model.built = False
    assert {"kind": "fit_ready", "fit_id": 1, "parameter_count": 16} in events


def test_whether_a_step_runs_is_on_disk_in_validation_too(clock: Clock) -> None:
    watch, written, _, board = make()
    callback = make_callback_class(Base)(watch)

    def seen() -> tuple[Any, ...]:
        clock.now += 1.0
        board.flush()
        names = ("steps_begun", "validation_step", "in_step")
        return tuple(written[-1][name] for name in names)

    assert seen() == (0, None, True)  # before the first step
    callback.on_epoch_begin(0)
    for batch in range(2):
        callback.on_train_batch_begin(batch)
        assert seen() == (batch + 1, None, True)
        callback.on_train_batch_end(batch)
        assert seen() == (batch + 1, None, False)
    callback.on_test_begin()
    assert seen() == (2, 0, True)
    callback.on_test_batch_begin(0)
    assert seen() == (2, 1, True)
    callback.on_test_end()
    callback.on_epoch_end(0)
    assert seen() == (2, None, False)
    callback.on_epoch_begin(1)
    callback.on_train_batch_begin(0)
    assert seen() == (3, None, True)
